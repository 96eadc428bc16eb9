"""The report: tables and one page that compare runs."""

"""What `doctor` looks at: versions, devices, processes and the machine."""

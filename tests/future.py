"""Releases that may come: what a template changes over the years, made on a clone of this one."""

import re
from pathlib import Path

from answers import QUESTIONS
from projects import git
from researcher import append, commit, edit

NEXT = "v1000.0.0"
AFTER_NEXT = "v1001.0.0"
RETIRED = "scripts/train.slurm"
SOURCE = "template/src/{{ package_name }}"
FEATURE = next(iter(QUESTIONS["features"]["choices"].values()))


def release(template: Path, version: str) -> None:
    commit(template, version)
    git(template, "tag", version)


def release_next(template: Path) -> None:
    """Fixes, new files in both rooms, and changes of shared files next to the lines of their owners."""
    source = template / SOURCE
    for name in ("engine/errors.py", "engine/splits.py", "models/classifier.py", "data/digits.py"):
        path = source / name
        path.write_text(f"# A fix.\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    (source / "engine/later.py").write_text('"""Later."""\n', encoding="utf-8")
    (source / "configs/optimizer/later.yaml").write_text("{_target_: torch.optim.NAdam, _partial_: true}\n")
    (source / "models/later.py").write_text('"""Later."""\n', encoding="utf-8")
    (source / "configs/data/later.yaml").write_text("{}\n", encoding="utf-8")
    before = {
        template / "template/pyproject.toml.jinja": {
            "    # Add your own dependencies below this line.\n": '    "cowsay",\n',
            "# Add your own extras below this line.\n": 'later = [\n    "cowsay",\n]\n',
            "# Add the settings of your own tools below this line.\n": "[tool.later]\nlevel = 3\n\n",
        },
        template / "template/Makefile.jinja": {
            "# Add your own targets below this line.\n": "later: ## something new\n\techo later\n\n"
        },
        template / "template/.gitignore.jinja": {"# Add your own patterns below this line.\n": "/later\n"},
        template / "template/.pre-commit-config.yaml": {
            "  # Add your own hooks below this line.\n": (
                "      - {id: later, name: later, language: system, entry: 'true', pass_filenames: false}\n"
            )
        },
    }
    for path, lines in before.items():
        for line, new in lines.items():
            edit(path, line, new + line)
    # a new key stands above the last one, which never changes: the owner's own keys follow that
    train = source / "configs/train.yaml.jinja"
    text = train.read_text(encoding="utf-8")
    last_key = re.findall(r"^\w+: .*\n", text, re.MULTILINE)[-1]
    edit(train, last_key, f"later: null\n{last_key}")
    release(template, NEXT)


def release_after_next(template: Path) -> None:
    """A question and a choice with new names, a question more, a file retired, a default that is another one."""
    questions = template / "copier.yml"
    text = questions.read_text(encoding="utf-8")
    for old, new in {
        "\nenvironment:\n": "\ntooling:\n",
        "  default: pip\n": "  default: \"{{ environment if environment is defined else 'pip' }}\"\n",
        "{% if environment != 'conda' %}": "{% if tooling is defined and tooling != 'conda' %}",
        "    {% if _copier_operation == 'update' %}\n": (
            f"    {{% if _copier_operation == 'update' %}}\n    /{RETIRED}\n"
        ),
        "\n_message_after_copy": (
            "\ncontact:\n  type: str\n  help: Whom to ask\n  default: '{{ user_email }}'\n\n_message_after_copy"
        ),
    }.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    question = text[text.index("\nfeatures:\n") :].split("\n\n")[0]
    default = re.findall(r"^  default: .*", question, re.MULTILINE)[0].removeprefix("  default: ").strip('"')
    kept = re.sub(rf"\b{FEATURE}\b", "renamed", default)
    bridged = f"""  default: >-
    {{%- if features is defined -%}}
    {{{{ features | map('regex_replace', '^{FEATURE}$', 'renamed') | list | to_json }}}}
    {{%- else -%}}
    {kept}
    {{%- endif %}}
"""
    renamed = re.sub(r"^  default: .*\n?", bridged, question + "\n", flags=re.MULTILINE)
    renamed = re.sub(rf": {FEATURE}$", ": renamed", renamed, flags=re.MULTILINE)
    text = text.replace(question, renamed.rstrip("\n"))
    text = text.replace(
        f"{{% if features is defined and '{FEATURE}' not in features %}}",
        f"{{% if features is defined and '{FEATURE}' not in features and 'renamed' not in features %}}",
    )
    questions.write_text(text, encoding="utf-8")
    for path in (template / "template").rglob("*.jinja"):
        text = path.read_text(encoding="utf-8")
        for words in ("in features", "not in features"):
            text = text.replace(f"'{FEATURE}' {words}", f"'renamed' {words}")
        path.write_text(text.replace("environment == 'conda'", "tooling == 'conda'"), encoding="utf-8")
    append(template / "template/LICENSE.jinja", "\nAsk {{ contact }}.\n")
    (template / f"template/{RETIRED}.jinja").unlink()
    append(template / SOURCE / "engine/errors.py", "# Another fix.\n")
    edit(template / SOURCE / "configs/train.yaml.jinja", "  - scheduler: cosine", "  - scheduler: onecycle")
    release(template, AFTER_NEXT)


def release_feature(template: Path) -> None:
    """A feature that is not there yet, in the way that features are made."""
    text = (template / "copier.yml").read_text(encoding="utf-8")
    choice = next(line for line in text.splitlines(keepends=True) if line.endswith(f": {FEATURE}\n"))
    edit(template / "copier.yml", choice, f"{choice}    Greetings: greetings\n")
    edit(
        template / "copier.yml",
        "    {% if _copier_operation == 'update' %}\n",
        "    {% if features is defined and 'greetings' not in features %}\n"
        "    /src/*/commands/greet.py\n    /src/*/engine/greetings\n    /docs/greetings.md\n    {% endif %}\n"
        "    {% if _copier_operation == 'update' %}\n",
    )
    source = template / SOURCE
    (source / "engine/greetings").mkdir()
    (source / "engine/greetings/__init__.py").write_text('"""Greetings."""\n', encoding="utf-8")
    (source / "commands/greet.py").write_text('"""Greet."""\n', encoding="utf-8")
    (template / "template/docs/greetings.md").write_text("# Greetings\n", encoding="utf-8")
    edit(
        template / "template/pyproject.toml.jinja",
        "# Add your own extras below this line.\n",
        "{% if 'greetings' in features %}\ngreetings = [\n    \"cowsay\",\n]\n{% endif %}\n"
        "# Add your own extras below this line.\n",
    )
    append(source / "configs/features.yaml.jinja", "{% if 'greetings' in features %}\ngreeting: hello\n{% endif %}\n")
    release(template, NEXT)

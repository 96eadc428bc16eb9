"""What becomes of a project in its owner's hands: a hundred commits, links to scratch, things deleted and moved."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from projects import git, package, run

ADDED = {  # a line of the owner's after the line of the template that asks for it; as `uv add` adds a dependency
    "pyproject.toml": {
        "    # Add your own dependencies below this line.\n": '    "pandas",\n',
        "# Add your own extras below this line.\n": 'ours = ["polars"]\n',
        "# Add the settings of your own tools below this line.\n": "[tool.ours]\nlevel = 3\n",
    },
    "Makefile": {"# Add your own targets below this line.\n": "ours:\n\techo ours\n"},
    ".gitignore": {"# Add your own patterns below this line.\n": "/scratch\n"},
    ".pre-commit-config.yaml": {
        "  # Add your own hooks below this line.\n": (
            "  - repo: local\n    hooks:\n"
            "      - {id: ours, name: ours, language: system, entry: 'true', pass_filenames: false}\n"
        )
    },
}


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", f"--message={message}")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@dataclass
class Owned:
    """A project that is its owner's, and what of it no update may change."""

    project: Path
    whole: dict[str, bytes] = field(default_factory=dict)  # files that stay as they are
    lines: list[tuple[str, str]] = field(default_factory=list)  # text that stays in files that both sides edit
    gone: list[str] = field(default_factory=list)  # what was deleted stays away
    links: dict[str, str] = field(default_factory=dict)

    @property
    def edited(self) -> set[str]:
        """The template's files that are not as the template made them."""
        return {name for name, _ in self.lines} | set(self.gone)

    def assert_kept(self) -> None:
        """After an update: no conflict, nothing lost."""
        status = git(self.project, "status", "--porcelain", "--ignored")
        assert "UU" not in status
        assert ".rej" not in status
        markers = ["git", "grep", "--files-with-matches", "-E", "^(<{7}|>{7}) (before|after) updating"]
        assert run(markers, self.project, check=False).stdout == ""
        for name, content in self.whole.items():
            assert (self.project / name).read_bytes() == content, name
        for name, text in self.lines:
            assert (self.project / name).read_text(encoding="utf-8").count(text) == 1, (name, text)
        assert [name for name in self.gone if (self.project / name).exists()] == []
        assert {name: os.readlink(self.project / name) for name in self.links} == self.links


def live_with(project: Path) -> Owned:
    """Edits what is the owner's and what is shared, and commits it."""
    source = project / "src" / package(project)
    owned = Owned(project)
    (project / "README.md").write_text("# Ours\n", encoding="utf-8")
    (source / "models/ours.py").write_text('"""Ours."""\n', encoding="utf-8")
    (source / "configs/experiment/ours.yaml").write_text("# @package _global_\nname: ours\n", encoding="utf-8")
    for name in ("data/digits.py", "models/classifier.py", "configs/model/resnet.yaml"):
        append(source / name, "# ours\n")
    for name, additions in ADDED.items():
        for line, ours in additions.items():
            edit(project / name, line, line + ours)
            owned.lines += [(name, line + ours)]
    rooms = ["README.md", *(f"src/{source.name}/{room}" for room in ("data", "models", "configs"))]
    commit(project, "Ours")
    names = git(project, "ls-files", "-z", *rooms).split("\0")[:-1]
    ours = {name: (project / name).read_bytes() for name in names}
    room = (f"src/{source.name}/data/", f"src/{source.name}/models/", "README.md")
    owned.whole = {name: content for name, content in ours.items() if name.startswith(room) or b"ours" in content}
    return owned


def live_a_month(project: Path, scratch: Path, commits: int = 3) -> Owned:
    """As `live_with`, and: files of both sides deleted and moved, a config changed, links to scratch, secrets."""
    owned = live_with(project)
    source = project / "src" / package(project)
    inside = f"src/{source.name}"

    # the template's room: an edit of the engine, a default of the shared config, options and tests of one's own
    append(source / "engine/splits.py", "\n# A note of ours.\n")
    edit(source / "configs/train.yaml", "  - model: resnet", "  - model: mlp")
    append(source / "configs/train.yaml", "\nour_setting: 3\n")
    (source / "configs/optimizer/ours.yaml").write_text("{_target_: torch.optim.Adamax, _partial_: true, lr: 0.01}\n")
    (project / "tests/test_ours.py").write_text('"""Ours."""\n')
    (project / "uv.lock").write_text("version = 1\n")
    owned.lines += [
        (f"{inside}/engine/splits.py", "# A note of ours.\n"),
        (f"{inside}/configs/train.yaml", "  - model: mlp"),
        (f"{inside}/configs/train.yaml", "our_setting: 3\n"),
    ]
    commit(project, "Our settings")

    # deleted and moved, of both rooms
    (project / "docs/diagnosis.md").unlink()
    (project / "docs/ours").mkdir()
    (project / "docs/your-own.md").rename(project / "docs/ours/your-own.md")
    (project / "tests/models/test_networks.py").rename(project / "tests/models/test_nets.py")
    (project / "notebooks/look_at_a_run.ipynb").unlink()
    owned.gone += ["docs/diagnosis.md", "docs/your-own.md", "tests/models/test_networks.py"]
    commit(project, "Tidy up")

    for number in range(commits - 3):
        append(source / "models/ours.py", f"# thought {number}\n")
        git(project, "commit", "--quiet", "--all", f"--message=Thought {number}")

    # what Git does not see, and a link that it does
    for name in ("data", "runs", "notebooks/large"):
        (scratch / name).mkdir(parents=True)
        (scratch / name / "kept.txt").write_text("kept\n")
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).symlink_to(scratch / name)
        owned.links[name] = str(scratch / name)
    (project / ".env").write_text("WANDB_API_KEY=secret\n")
    (source / "configs/local").mkdir()
    (source / "configs/local/default.yaml").write_text("# @package _global_\n")
    commit(project, "Large files on scratch")

    kept = [
        *(f"{inside}/models/ours.py", f"{inside}/configs/optimizer/ours.yaml", "tests/test_ours.py", "uv.lock"),
        *("docs/ours/your-own.md", "tests/models/test_nets.py", ".env", f"{inside}/configs/local/default.yaml"),
        *("data/kept.txt", "runs/kept.txt", "notebooks/large/kept.txt"),
    ]
    owned.whole |= {name: (project / name).read_bytes() for name in kept}
    return owned

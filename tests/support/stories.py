"""Random stories of both programs and another engine on one table, judged by the table's rows.

Every line of every source file has an id of its own, so that the table shows by itself which rows
are missing, doubled or back. What the programs say of the table is compared with that.
"""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from lakebed.storage.store import Store
from tests.support.deletion_vectors import delete_in_place
from tests.support.dying import Died, Fate, dying
from tests.support.foreign import Directory
from tests.support.mapped import added
from tests.support.retractions import Taken

FIELDS = [{"name": "id", "type": "int64"}, {"name": "v", "type": "int64"}]
FOREIGN = 1_000_000
"""Ids from here on are rows that another engine wrote."""

Step = tuple[str, int, int]


class Engine(Protocol):
    """Another program that changes the table."""

    def ids(self, table: Path) -> list[int]: ...
    def restore(self, table: Path, version: int) -> None: ...
    def optimize(self, table: Path) -> None: ...
    def delete(self, table: Path, number: int) -> None: ...
    def update(self, table: Path, number: int) -> None: ...
    def merge(self, table: Path, number: int, new: int) -> None: ...
    def append(self, table: Path, new: int) -> None: ...


FILE_STATES = ("waiting", "failed", "journaled", "held")


class DeltaRs:
    """deltalake, by its Python package."""

    def ids(self, table: Path) -> list[int]:
        rows = pa.table(DeltaTable(str(table)).scan(columns=["id"]).read_all())
        found: list[Any] = rows["id"].to_pylist()
        return found

    def restore(self, table: Path, version: int) -> None:
        try:
            DeltaTable(str(table)).restore(version)
        except DeltaError as error:
            if "Find missing file" not in str(error):
                raise  # Otherwise a file of that version is lost, and the engine refuses.

    def optimize(self, table: Path) -> None:
        DeltaTable(str(table)).optimize.compact()

    def delete(self, table: Path, number: int) -> None:
        DeltaTable(str(table)).delete(f"id = {number}")

    def update(self, table: Path, number: int) -> None:
        DeltaTable(str(table)).update(updates={"v": "v + 1"}, predicate=f"id = {number}")

    def merge(self, table: Path, number: int, new: int) -> None:
        merger = DeltaTable(str(table)).merge(
            _rows(number, new), "t.id = s.id", source_alias="s", target_alias="t"
        )
        inserts = {"id": "s.id", "v": "s.v"}
        new_only = f"s.id >= {FOREIGN}"
        merger.when_matched_delete().when_not_matched_insert(inserts, new_only).execute()

    def append(self, table: Path, new: int) -> None:
        write_deltalake(str(table), _rows(new), mode="append", schema_mode="merge")


class Story(Taken):
    """One table, what the story did to it, and what therefore may be in it."""

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        *,
        provenance: bool,
        on_change: str,
        inline: bool,
        staging: bool = False,
    ) -> None:
        schema: dict[str, Any] = {"fields": FIELDS}
        if provenance:
            schema["provenance"] = ["file"]
        sink: dict[str, Any] = {"compact": {"min_files": 2}}
        if inline:
            sink["commit"] = "inline"
        elif staging:
            sink["handoff"] = "staging"
        super().__init__(folder, schema, source={"on_change": on_change}, **sink)
        self.engine = engine
        self.others_hand_over = staging and not inline
        self.content: dict[str, list[int]] = {}
        """The ids in each source file, as it is now."""
        self.ever: dict[str, set[int]] = {}
        """All ids that a source file ever had."""
        self.decided: set[int] = set()
        """Ids that a command or new content was to take out: they may be in the table, or not."""
        self.changed: set[int] = set()
        """Ids whose rows another engine has deleted or updated at some time."""
        self.on_change = on_change
        self.has_accepted = False
        self.rows_changed = False
        """Whether another engine has changed rows, or restored others."""
        self.vectors: dict[str, list[int]] = {}
        """The places that each deletion vector deletes."""
        self.told: list[str] = []
        self.next_id = 0

    # ------------------------------------------------ steps

    def play(self, steps: Sequence[Step]) -> None:
        """Play a story to its end, and check what the programs say of the table."""
        self.land_new(2)
        self.ingest()
        for name, first, second in steps:
            self.told.append(f"{name} {first} {second}")
            getattr(self, name)(first, second)
        self.ingest()
        self.check("at the end")
        self.order("replay", "--yes")
        self.ingest()
        self.check("after penguin replay")

    def arrive(self, count: int, together: int) -> None:
        """New files arrive, in one batch or in one each."""
        for _ in range(1 + count % 2):
            self.land_new(1 + together % 2)
            self.ingest()

    def change(self, which: int, _second: int) -> None:
        """A source file is overwritten."""
        name = self.name(which)
        self.decided |= set(self.content[name])
        self.land_ids(name)
        self.ingest()

    def land_only(self, which: int, overwrite: int) -> None:
        """A file arrives or is overwritten, and waits for the next run."""
        if overwrite % 2:
            name = self.name(which)
            self.decided |= set(self.content[name])
            self.land_ids(name)
        else:
            self.land_new(1)

    def batch(self, _first: int, _second: int) -> None:
        """Blizzard runs alone."""
        self.blizzard()

    def commits(self, _first: int, _second: int) -> None:
        """Penguin runs alone."""
        self.penguin()

    def retracts(self, which: int, waits: int) -> None:
        """Rows of a source file are retracted; penguin may come later."""
        name = self.name(which)
        self.decided |= self.ever[name]
        self.cli("retract", name, "--yes")
        if waits % 2 == 0:
            self.penguin()

    def replaces(self, which: int, by: int) -> None:
        """Rows of a source file are replaced by its own new content, or by another file."""
        name = self.name(which)
        self.decided |= self.ever[name]
        if by % 3 == 0:
            self.land_ids(name)
            other = name
        elif by % 3 == 1:
            other = name
        else:
            other = self.land_new(1)
            self.decided |= self.ever[other]
        self.cli("retract", name, "--replace", other, "--yes")
        if by % 2 == 0:
            self.penguin()

    def erases(self, which: int, waits: int) -> None:
        """A row is erased."""
        number = self.an_id(which)
        self.decided.add(number)
        self.cli("erase", "--where", f"id = {number}", "--yes")
        if waits % 2 == 0:
            self.penguin()

    def compacts(self, _first: int, waits: int) -> None:
        """Blizzard compacts small files."""
        self.cli("compact", "--now", "--yes")
        if waits % 2 == 0:
            self.penguin()

    def replays(self, _first: int, _second: int) -> None:
        """Penguin puts back what the journal has and the table has not."""
        self.order("replay", "--yes")

    def accepts(self, _first: int, _second: int) -> None:
        """An operator accepts the first loss that the audit names."""
        for one in self.audited().differences:
            if one.version is not None:
                self.cli("audit", "--accept", str(one.version), "--reason", "a story")
                # Then as many rows that came back may be the deleted ones.
                self.has_accepted |= "RESTORE" not in one.message
                self.decided |= self.changed
                self.decided |= {number for ids in self.ever.values() for number in ids}
                return

    def loses(self, which: int, redone: int) -> None:
        """A data file of the table is deleted; fsck repairs the log, and its sources are redone."""
        active = sorted(self.active)
        if not active:
            return
        file = self.table / active[which % len(active)]
        body = file.read_bytes()
        file.unlink()
        self.rows_changed = True
        self.decided |= {number for ids in self.ever.values() for number in ids}
        lost = self.order("fsck", "--repair", "--yes").exit_code
        if lost and self.order("fsck", "--repair", "--rows-lost", "--yes").exit_code:
            file.write_bytes(body)  # It says to put the file back.
        if redone % 2:
            self.cli("redo", "--yes")
            self.ingest()

    def restores(self, back: int, _second: int) -> None:
        """The other engine restores an earlier version."""
        version = self.version
        self.rows_changed = True
        if version:
            self.engine.restore(self.table, max(0, version - 1 - back % 4))

    def optimizes(self, _first: int, _second: int) -> None:
        """The other engine compacts."""
        self.engine.optimize(self.table)

    def deletes(self, which: int, _second: int) -> None:
        """The other engine deletes a row."""
        self.by_id(which, self.engine.delete)

    def marks(self, which: int, _second: int) -> None:
        """The other engine deletes a row by a deletion vector, as Spark does."""
        number = self.an_id(which)
        for path, add in added(self).items():
            file = self.table / path
            vector = add.get("deletionVector") or {}
            gone = self.vectors.get(vector.get("pathOrInlineDv", ""), [])
            ids = pq.read_table(file)["id"].to_pylist() if file.exists() else []
            if number in ids and ids.index(number) not in gone:
                places = sorted([*gone, ids.index(number)])
                new = delete_in_place(self, path, places)
                self.vectors[new["pathOrInlineDv"]] = places
                self.changed.add(number)
                self.rows_changed = True
                return

    def updates(self, which: int, _second: int) -> None:
        """The other engine updates a row."""
        self.by_id(which, self.engine.update)

    def merges(self, which: int, _second: int) -> None:
        """The other engine deletes a row and inserts one of its own."""
        self.by_id(which, lambda table, number: self.engine.merge(table, number, self.fresh()))

    def appends(self, _first: int, _second: int) -> None:
        """The other engine appends a row of its own."""
        self.engine.append(self.table, self.fresh())

    def hands_over(self, _first: int, _second: int) -> None:
        """Another program hands a file with one row over to penguin."""
        if not self.others_hand_over:
            return
        other, number = Directory(self.table), self.next_id
        self.next_id += 1
        path = f"{uuid.uuid4()}.parquet"
        other.meta(other.file(path=path, data=_rows(number)))
        self.penguin()
        if path in self.active:
            self.ever.setdefault("handed over", set()).add(number)

    def checkpoints(self, _first: int, _second: int) -> None:
        """The log gets a checkpoint."""
        DeltaTable(str(self.table)).create_checkpoint()

    def dies(self, call: int, after: int) -> None:
        """Blizzard or penguin is killed before or after a change, and starts again."""
        self.land_new(1)
        fate = Fate(call=1 + call, after=bool(after % 2), changes_only=True)
        try:
            if after % 4 < 2:
                self.blizzard(
                    open_sink=lambda place: dying(
                        Store(place.uri, place.options, make_folder=True), fate
                    )
                )
            else:
                self.blizzard()
                self.penguin(fate)
        except Died:
            self.ends_well()
        self.ingest()

    # ------------------------------------------------ what the steps need

    def land_new(self, files: int) -> str:
        """Land new files; return the name of the last."""
        for _ in range(files):
            name = f"f{len(self.content):03}.ndjson"
            self.land_ids(name)
        return name

    def land_ids(self, name: str) -> None:
        """Write a source file with ids that no other content has."""
        ids = [self.next_id + place for place in range(1 + self.next_id % 3)]
        self.next_id += len(ids)
        self.content[name] = ids
        self.ever.setdefault(name, set()).update(ids)
        self.land(name, *({"id": number, "v": 0} for number in ids))

    def name(self, which: int) -> str:
        names = sorted(self.content)
        return names[which % len(names)]

    def an_id(self, which: int) -> int:
        return which % self.next_id

    def fresh(self) -> int:
        self.next_foreign = getattr(self, "next_foreign", FOREIGN) + 1
        return self.next_foreign

    def by_id(self, which: int, act: Callable[[Path, int], None]) -> None:
        number = self.an_id(which)
        self.changed.add(number)
        self.rows_changed = True
        act(self.table, number)

    # ------------------------------------------------ what must hold

    def in_table(self) -> Counter[int]:
        """Count the rows of each id, those of the other engine left out."""
        return Counter(number for number in self.engine.ids(self.table) if number < FOREIGN)

    def asked(self, *arguments: str) -> Any:
        """Return an answer of blizzard's as JSON."""
        done = self.cli(*arguments, "--output", "json")
        return json.loads(done.stdout)

    def check(self, when: str) -> None:
        """Compare the audit and the answers with the rows of the table."""
        rows = self.in_table()
        audit = self.audited()
        answers = {name: self.asked("why", name) for name in sorted(self.content)}
        faults = [
            *self.silent_losses(rows, audit.is_balanced, answers),
            *self.false_alarms(rows, audit),
            *(self.old_content(rows) if audit.is_balanced else ()),
            *self.false_answers(rows, audit.is_balanced, answers),
            *self.disagreements(answers),
        ]
        assert not faults, "\n".join(
            [
                when,
                *faults,
                f"rows {dict(rows)}",
                f"ever {self.ever}",
                *(f"audit: {one.kind.value}: {one.message}" for one in audit.differences),
                *(f"{name}: {one['state']}: {one['answer']}" for name, one in answers.items()),
                *self.told,
            ]
        )

    def silent_losses(
        self, rows: Counter[int], balanced: bool, answers: dict[str, Any]
    ) -> list[str]:
        """Name rows that are doubled or missing though the audit is balanced."""
        if not balanced and self.rows_changed:
            return []
        doubled = sorted(number for number, count in rows.items() if count > 1)
        waiting = {
            number
            for name, ids in self.content.items()
            if answers[name]["state"] in ("waiting", "failed", "journaled", "changed", "held")
            for number in ids
        }
        every = {number for ids in self.ever.values() for number in ids}
        lost = sorted(every - self.decided - waiting - set(rows))
        doubled_rows = [f"balanced, and doubled: {doubled}"] * bool(doubled)
        return doubled_rows + [f"balanced, and missing: {lost}"] * bool(lost)

    def old_content(self, rows: Counter[int]) -> list[str]:
        """Name source files with rows of earlier content beside their present one."""
        if self.on_change == "reingest" or self.has_accepted:
            return []
        now = {number for ids in self.content.values() for number in ids}
        return [
            f"balanced, and {name} has rows of earlier content: {sorted(old)}"
            for name, ids in self.content.items()
            if {*ids} <= set(rows) and (old := (self.ever[name] - now) & set(rows))
        ]

    def false_alarms(self, rows: Counter[int], audit: Any) -> list[str]:
        """Name differences of a table that has exactly the rows that it should."""
        every = {number for ids in self.ever.values() for number in ids}
        untouched = not self.decided and not self.changed and rows == Counter(every)
        if self.rows_changed and not untouched:
            return []
        return [f"a false alarm: {one.message}" for one in audit.differences]

    def false_answers(
        self, rows: Counter[int], balanced: bool, answers: dict[str, Any]
    ) -> list[str]:
        """Name answers about a source file that its rows contradict."""
        faults = []
        for name, answer in answers.items():
            there = self.ever[name] & set(rows)
            last = set(self.content[name])
            match answer["state"]:
                case "in_table" if not last <= set(rows) and not (last & self.decided):
                    faults.append(f"{name} is said to be in, of {sorted(last)} {sorted(there)} are")
                case "retracted" | "removed" if last & there and balanced:
                    faults.append(f"{name} is said to be out, and {sorted(there)} are in")
                case "missing" | "elsewhere" | "skipped":
                    faults.append(f"{name} is said to be {answer['state']}")
        return faults

    def disagreements(self, answers: dict[str, Any]) -> list[str]:
        """Name answers of `files` and `status` that differ from those of `why`."""
        (group, *others) = self.asked("files")["groups"] or [{}]
        assert not others
        listed = self.cli("files", "f", "--limit", "1000", "--output", "json").stdout.splitlines()
        now = [one for one in map(json.loads, listed) if not one["overwritten"]]
        standings = {one["path"].rpartition(":")[2]: one["state"] for one in now}
        status = self.asked("status")
        (source,) = status["sources"]
        said = Counter(one["state"] for one in answers.values())
        counts = [
            *(("files", state, group.get(state, 0)) for state in FILE_STATES),
            ("status", "waiting", source["pending_files"]),
            ("status", "failed", source["failed_files"]),
        ]
        faults = [
            f"{surface} counts {count} {state}, why says so of {said[state]}"
            for surface, state, count in counts
            if count != said[state]
        ]
        faults += [
            f"files says that {name} is {standings.get(name)}, why says {answer['state']}"
            for name, answer in answers.items()
            if standings.get(name) != answer["state"]
        ]
        if said["journaled"] and not status["uncommitted_entries"]:
            faults.append("status has no entry to commit, why has files of such an entry")
        return faults


def _rows(*numbers: int) -> pa.Table:
    values = {"id": pa.array(numbers, pa.int64()), "v": pa.array([0] * len(numbers), pa.int64())}
    return pa.table(values)

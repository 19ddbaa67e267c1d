"""The Ids of jobs that were given none."""

from __future__ import annotations

from sssjob.document.ids import give_ids
from sssjob.findings import Findings
from sssjob.xml.reader import read_document


def test_each_job_gets_one_that_no_other_has() -> None:
    """Twice the same from the same document; one that stands there is kept."""
    text = ("<JobGroup><Id>g</Id><Job><Name>a</Name></Job><Job><Id>a-2</Id></Job><Job><Name>a</Name></Job>"
            "<Job><Id>job-5</Id></Job><Job/></JobGroup>")
    for _ in range(2):
        document, findings = read_document(text.encode()), Findings()
        give_ids(document, findings)
        assert [job.value("Id") for job, _ in document.jobs()] == ["a", "a-2", "a-3", "job-5", "job-5-2"]
        assert [(f.rule, f.severity, f.message) for f in findings] == [
            ("SSS503", "info", f"Id: the job has none, it is called {name}") for name in ("a", "a-3", "job-5-2")]

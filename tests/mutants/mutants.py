"""One way to break each rule, and the tests that should detect it: Mutant(name, rule, file, old, new, runs).

Left out, because no test can detect them: a released event that is reused before it is done (recording it again
moves it, and waits that were queued keep the earlier record); the drain's own check for a shutdown (every
caller has checked before); a stream's wait without its fence (the core's ticket ends the wait a slice later).

`old` occurs exactly once in the file. The runs are tried in order until one fails. Each is `<suite>-<run>`, a suite of
the conformance program; a unit of the core; `fault-sweep-<run>:<function>`, the failures of one vendor function; or
`python:<run>:<file>`, or one test of it: `python:<run>:<file>::<test>`.
"""

from backend_mutants import BACKENDS
from comm_mutants import COMM
from core_mutants import CORE

MUTANTS = CORE + COMM + BACKENDS

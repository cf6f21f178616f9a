"""Prints what gpuglue doctor reports of each broken machine of test_doctor.py, as a table: the machine, the cause, the exit status.

    doctor_table.py     with the variables of the tests, such as GPUGLUE_TEST_LIBRARIES"""

import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
TEST = "a_broken_machine_gets_its_cause"


def main():
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--backend", "host", HERE / "test_doctor.py", "-k", TEST,
                   f"--junit-xml={report}"]  # fmt: skip
        status = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
        cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    rows = [[item.get("value") for item in case.iter("property")] for case in cases]
    print("| machine | cause, as reported | exit status |\n|---|---|---|")
    for row in filter(None, rows):
        print(f"| {' | '.join(row)} |")
    print(f"\n{sum(map(bool, rows))} machines, {sum(not row for row in rows)} skipped or failed")
    return status


if __name__ == "__main__":
    sys.exit(main())

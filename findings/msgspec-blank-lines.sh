#!/usr/bin/env bash
# msgspec's `Decoder.decode_lines` skips blank lines, so the n-th value need not be that of the n-th line.
#
# Guess: a blank line is malformed JSON, as it is for `decode`, and raises DecodeError; or else three lines give three
# values. What happens: `decode` refuses an empty text, `decode_lines` leaves it out without a word.
#
# Why it matters to a ranking service: where the place of a line is the number of an event, one emptied line moves all
# events behind it by one, and each decodes without an error. Compare the number of values with that of the lines.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check msgspec==0.22.0
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import msgspec

print(f"Python {sys.version.split()[0]}, msgspec {msgspec.__version__}")
decoder = msgspec.json.Decoder(int)
lines = b"1\n\n3"
values = decoder.decode_lines(lines)
print(f"{lines.count(10) + 1} lines give {len(values)} values: {values}")
try:
    decoder.decode(b"")
    refused = False
except msgspec.DecodeError as error:
    print(f"decode(b'') raises: {error}")
    refused = True
sys.exit(0 if values == [1, 3] and refused else "it has changed")
PYTHON

#!/bin/sh
# The proofs with other versions of the frameworks, each set in an environment of its own.
set -eu
cd "$(dirname "$0")/../.."
python=${1:-python3}
status=0
# lightning 1.9.5 no longer imports beside today's lightning-cloud; pytorch-lightning 1.9.5 does, with setuptools' pkg_resources
for set in "torch==2.13.0 pytorch-lightning==1.9.5 setuptools<81" \
           "torch==2.13.0 transformers==4.57.3 accelerate==1.10.1"; do
  folder=$(mktemp -d)
  "$python" -m venv "$folder"
  if "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]' $set; then
    echo "== $set"
    "$folder/bin/python" -m pytest tests/proofs -m proof -rs || status=1
  else
    echo "== does not install here: $set"
  fi
  rm -rf "$folder"
done
exit $status

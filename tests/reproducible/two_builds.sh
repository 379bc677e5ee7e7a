#!/usr/bin/env bash
# Two builds of the last commit, in folders of different names, give the same packages: one of a clone, one of the source
# distribution that the clone packs. Each builds everything that packages contain, from Debian's sources on: an hour on two cores.
#   tests/reproducible/two_builds.sh [KIND...]      of scripts/package.sh; wheel, deb and tar if none is named
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=$PWD/build/reproducible
kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || kinds=(wheel deb tar)
clone=$folder/clone sources=$folder/unpacked/with/longer/names

rm -rf "$folder"
mkdir -p "$sources"
git clone -q "file://$PWD" "$clone"
"$clone/scripts/package.sh" --into "$folder/sources" sdist
tar -C "$sources" -xzf "$folder"/sources/*.tar.gz
"$clone/scripts/package.sh" --into "$folder/one" "${kinds[@]}"
(umask 077 && TZ=Pacific/Kiritimati "$sources"/tprimat-*/scripts/package.sh --into "$folder/the_other" "${kinds[@]}")

# sums FOLDER: of all files, with their names.
sums() { (cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum); }
sums "$folder/one" | tee "$folder/one.txt"
[ -s "$folder/one.txt" ] || { echo "error: nothing was packed" >&2; exit 1; }
sums "$folder/the_other" | diff "$folder/one.txt" - ||
  { echo "error: two builds of one commit differ (diffoscope shows in what): $folder/one and $folder/the_other" >&2; exit 1; }
echo "two builds, the same bytes"

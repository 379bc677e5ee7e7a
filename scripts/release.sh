#!/usr/bin/env bash
# Makes a release of branch main: tests it, commits and tags the version, and makes its packages in build/packages.
#   scripts/release.sh VERSION             such as 1.2.3
#   scripts/release.sh VERSION --tested    without ./test.sh, where it has just passed
# Nothing leaves this machine: the last lines say what to push. The version stands in CMakeLists.txt alone, and in the first
# heading of CHANGELOG.md, `## VERSION (unreleased)`, which gets the date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

packages=(wheel wheel-nvd sdist deb tar sbom sums)
version=${1:-} tested=${2:-}
[[ "$version" =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$ ]] || fail "name the version to release, such as 1.2.3: scripts/release.sh VERSION"
[ -z "$tested" ] || [ "$tested" = --tested ] || fail "unknown option $tested; see the head of scripts/release.sh"

check_tree() {
  local branch changed current
  branch=$(git rev-parse --abbrev-ref HEAD)
  [ "$branch" = main ] || fail "releases are made of branch main, and this is $branch: git switch main"
  changed=$(git status --porcelain)
  [ -z "$changed" ] || fail "the tree differs from its last commit; commit or remove:
$changed"
  ! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || fail "version $version is released: there is a tag v$version"
  current=$(project_version)
  [ "$(printf '%s\n' "$current" "$version" | sort -V | tail -n 1)" = "$version" ] ||
    fail "version $version is before $current, which CMakeLists.txt states"
  grep -m 1 '^## ' CHANGELOG.md | grep -q ' (unreleased)$' ||
    fail "CHANGELOG.md has nothing new: its first heading is not '## $version (unreleased)'"
}

# The place where the version stands, and the heading. Until they are committed, a failure takes them back.
set_version() {
  trap 'git checkout -q -- CMakeLists.txt CHANGELOG.md' EXIT
  sed -i "s/^project(tprimat VERSION [0-9.]*/project(tprimat VERSION $version/" CMakeLists.txt
  sed -i "0,/^## .* (unreleased)$/s//## $version ($(date -u +%F))/" CHANGELOG.md
}

commit_version() {
  git commit -q --allow-empty -m "Release $version" -- CMakeLists.txt CHANGELOG.md
  trap - EXIT
  git tag -a -m "Release $version" "v$version"
}

check_tree
set_version
[ -n "$tested" ] || ./test.sh || fail "the tests fail, and nothing was released"
commit_version
scripts/package.sh "${packages[@]}" || fail "version $version is committed and tagged, but its packages failed. Where the cause is
this machine, mend it and go on: scripts/package.sh ${packages[*]}
Where it is the sources, take the release back, mend them and start again: git tag -d v$version && git reset --hard HEAD~"
progress "Version $version lies in build/packages. To publish it:
    git push origin main v$version
    twine upload build/packages/tprimat*-$version*.whl build/packages/tprimat-$version.tar.gz"

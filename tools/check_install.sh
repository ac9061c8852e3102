#!/bin/sh
# usage: [MAKE=make] tools/check_install.sh BUILD_FOLDER
# Installs into an empty folder, runs what lies there, uninstalls and looks for what is left; packs the .deb and looks
# into it; links the static program and runs it where no library is. `make check-install` calls this.
set -eu
[ $# = 1 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.."
build=$1
make=${MAKE:-make}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" "$build/a stage"' EXIT
wrong() { echo "check_install: $1: expected $2, got ${3:-another}" >&2; exit 1; }
git status --porcelain >"$scratch/status-before"

# A folder with a space in its name, because somebody has one.
stage="$scratch/a stage"
$make --no-print-directory run-install DESTDIR="$stage" PREFIX=/opt/linnet >/dev/null
linnet=$stage/opt/linnet/bin/linnet
"$linnet" --version >/dev/null
share=$stage/opt/linnet/share
for page in $("$linnet" manual --list); do
    [ -s "$share/man/man1/$page.1" ] || wrong "$page.1" "a manual page" none
done
for file in bash-completion/completions/linnet zsh/site-functions/_linnet fish/vendor_completions.d/linnet.fish \
    doc/linnet/README.md doc/linnet/LICENSE; do
    [ -s "$share/$file" ] || wrong "$file" "a file" none
done
for page in README.md models/README.md models/RESULTS.md models/templates/README.md models/architectures/README.md; do
    sed -n 's/.*](\([^):#]*\)).*/\1/p' "$share/doc/linnet/$page" | while read -r link; do
        [ -e "$(dirname "$share/doc/linnet/$page")/$link" ] || wrong "$page" "$link, which it links to" none
    done
done
if command -v bash >/dev/null; then bash -n "$share/bash-completion/completions/linnet"; fi
# What is not ours stays: a page, an empty folder.
mkdir "$stage/opt/linnet/share/empty" && : >"$stage/opt/linnet/share/man/man1/other.1"
$make --no-print-directory uninstall DESTDIR="$stage" PREFIX=/opt/linnet
left=$(cd "$stage/opt/linnet" && find . -type f -o -type d -empty | sort | tr '\n' ' ')
[ "$left" = "./share/empty ./share/man/man1/other.1 " ] || wrong "make uninstall" "only what is not ours left" "$left"
rm "$stage/opt/linnet/share/man/man1/other.1" && rmdir "$stage/opt/linnet/share/empty"
$make --no-print-directory uninstall DESTDIR="$stage" PREFIX=/opt/linnet
[ -z "$(ls -A "$stage")" ] || wrong "make uninstall" "an empty folder" "$(ls -A "$stage")"

# Relative names are taken from here.
for to in "DESTDIR=$build/a stage" "PREFIX=$build/a stage/opt"; do
    $make --no-print-directory run-install PREFIX=opt "$to" >/dev/null
    for file in bin/linnet share/man/man1/linnet.1; do
        [ -s "$build/a stage/opt/$file" ] || wrong "make install '$to'" "$file below it" none
    done
    $make --no-print-directory uninstall PREFIX=opt "$to"
    left=$(find "$build/a stage" -type f)
    [ -z "$left" ] || wrong "make uninstall '$to'" "no file" "$left"
done
for target in deb check-install; do
    said=$($make --no-print-directory -n "$target" | tail -n 1)
    case $said in ": "*) ;; *) wrong "make -n $target" "to do nothing" "$said" ;; esac
done

if command -v dpkg-deb >/dev/null; then
    package=$($make --no-print-directory run-deb | tail -n 1)
    dpkg-deb -R "$package" "$scratch/package"
    (cd "$scratch/package" && md5sum --quiet -c DEBIAN/md5sums)
    "$scratch/package/usr/bin/linnet" --version >/dev/null
    gzip -t "$scratch/package/usr/share/man/man1/linnet.1.gz"
    if command -v lintian >/dev/null; then lintian --allow-root --fail-on error,warning "$package"; fi
else
    echo "check_install: no dpkg-deb here, so no package"
fi

if [ "$(uname -s)" = Linux ]; then
    $make --no-print-directory "$build/linnet-static" >"$scratch/static.log" 2>&1 || { cat "$scratch/static.log" >&2; exit 1; }
    if ldd "$build/linnet-static" >/dev/null 2>&1; then wrong "$build/linnet-static" "no dynamic executable" one; fi
    mkdir "$scratch/empty"
    cp "$build/linnet-static" "$scratch/empty/linnet"
    if [ "$(id -u)" = 0 ]; then
        text=$(chroot "$scratch/empty" /linnet generate -p "ROMEO:" -n 4 --temp 0)
    else
        text=$(env -i "$scratch/empty/linnet" generate -p "ROMEO:" -n 4 --temp 0)
    fi
    [ "$text" = "$("$build/linnet" generate -p "ROMEO:" -n 4 --temp 0)" ] || wrong "linnet-static" "the text of linnet"
fi

git status --porcelain | diff "$scratch/status-before" - || wrong "git status" "as before" "the files above"

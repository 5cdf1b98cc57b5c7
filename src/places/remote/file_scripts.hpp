#pragma once

#include <string>
#include <string_view>

// Scripts that run in a sandbox to inspect and move its files. Their arguments are passed as
// base64, because a name may hold any byte but JSON may not; they are $a, $b, $c and $e. Any POSIX
// shell will do, with coreutils, findutils and tar, or with busybox.
namespace berth::places::remote::file_scripts {

// Exit codes for known reasons.
inline constexpr int not_there = 44;
inline constexpr int does_not_fit = 45;
inline constexpr int arrived_changed = 46;

inline std::string with_words(std::string_view script, std::size_t count) {
  std::string whole = R"sh(w() { printf %s "$1" | base64 -d; printf x; }; )sh";
  const std::string_view names = "abce";
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name{names[i]};
    whole += name + "=$(w \"$" + std::to_string(i + 1) + "\"); ";
    whole += name + "=${" + name + "%x}; ";
  }
  return whole += script;
}

// a: the start folder, b: names. The last may be anything, those before it only folders.
inline constexpr std::string_view look = R"sh(
at=$a; above=; IFS=/; set -f
for name in $b; do
  if [ -n "$above" ]; then
    if [ -L "$at" ]; then echo link; exit 0; fi
    if [ ! -e "$at" ]; then echo none; exit 0; fi
    if [ ! -d "$at" ]; then echo file; exit 0; fi
  fi
  at=$at/$name; above=yes
done
if [ ! -e "$at" ] && [ ! -L "$at" ]; then echo none; exit 0; fi
if [ -z "$above" ]; then at=$at/.; fi
stat -c '%f %s %Y %h' "$at" || exit 1
if [ -L "$at" ]; then readlink "$at" | base64 | tr -d '\n'; fi
)sh";

// a: the folder, b: the size at which the output is cut. Groups of lines: one for each entry, then
// the names, then the link targets. Names and targets end with a NUL and are encoded as base64.
inline constexpr std::string_view list = R"sh(
cd "$a" || exit 44
find . -mindepth 1 -maxdepth 1 ! -name '.paperclip-upload*' -print0 | xargs -0 -n 200 sh -c '
  [ $# -gt 0 ] || exit 0
  stat -c "%f %s %Y %h" "$@" 2>/dev/null
  printf "names "; printf "%s\0" "$@" | base64 | tr -d "\n"
  printf "\ntargets "
  for f; do if [ -L "$f" ]; then readlink "$f"; fi; printf "\0"; done | base64 | tr -d "\n"
  echo
' sh | head -c "$b"
)sh";

// a: the path to remove.
inline constexpr std::string_view remove = R"sh(rm -rf "$a")sh";

// a: the file, b: block size in bytes, c: block number.
inline constexpr std::string_view read =
    R"sh(dd if="$a" bs="$b" skip="$c" count=1 2>/dev/null | base64 | tr -d '\n')sh";

// a: the folder, b: the scratch file in it.
inline constexpr std::string_view begin_file = R"sh(mkdir -p "$a" && umask 077 && : >"$b")sh";
// a: the folder.
inline constexpr std::string_view make_folder = R"sh(mkdir -p "$a")sh";
// a: the scratch file. The bytes come on stdin.
inline constexpr std::string_view append = R"sh(base64 -d >>"$a")sh";
// a: the scratch file, b: the target, c: its mode, e: its bytes.
inline constexpr std::string_view finish_file = R"sh(
[ "$(wc -c <"$a")" -eq "$e" ] || exit 46
if [ -d "$b" ]; then exit 45; fi
chmod "$c" "$a" && mv -f "$a" "$b"
)sh";

// a: the folder. Prints the first entry that must not leave it.
inline constexpr std::string_view find_unfit = R"sh(
cd "$a" || exit 44
find . ! -name '.paperclip-upload*' \( ! -type f ! -type d ! -type l -o -type f -links +1 \) \
  -print0 2>/dev/null | head -c 8192 | base64 | tr -d '\n'
)sh";

// a: the folder, b: the names to pack, c: the scratch file, e: the size at which it is cut. Prints
// the size and tar's exit code. A tar that cannot exclude files also packs those still arriving.
inline constexpr std::string_view pack = R"sh(
umask 077
but=--exclude='.paperclip-upload*'
tar "$but" -cf /dev/null -C /dev null 2>/dev/null || but=
end=$({ { tar -C "$a" ${but:+"$but"} -cf - "$b"; echo $? >&3; } |
  head -c "$e" >"$c"; } 3>&1)
echo "$(wc -c <"$c")" "$end"
)sh";

// a: the target, b: the draft folder in it. Prints the topmost folder that it created.
inline constexpr std::string_view open_draft = R"sh(
at=$a; top=
while [ ! -d "$at" ]; do top=$at; at=${at%/*}; if [ -z "$at" ]; then at=/; fi; done
mkdir -p "$a" && mkdir -m 700 "$b" && printf %s "$top" | base64 | tr -d '\n'
)sh";

// a: the target, b: the draft folder in it, c: the archive to fill it from, if any. First checks
// that everything fits; links in the target are not followed.
inline constexpr std::string_view place_draft = R"sh(
if [ -n "$c" ]; then tar -xopf "$c" -C "$b" && rm -f "$c" || exit 1; fi
cd "$b" || exit 1
unfit=$(find . ! -name . -exec sh -c '
  to=$1; shift
  for f; do
    if [ -d "$f" ] && [ ! -L "$f" ]; then
      if [ -d "$to/$f" ] && [ ! -L "$to/$f" ]; then continue; fi
      if [ ! -e "$to/$f" ] && [ ! -L "$to/$f" ]; then continue; fi
    elif [ ! -d "$to/$f" ] || [ -L "$to/$f" ]; then continue; fi
    printf %s "$f" | base64 | tr -d "\n"; echo
  done' sh "$a" {} + | head -n 1)
if [ -n "$unfit" ]; then printf %s "$unfit"; exit 45; fi
place() {
  for f in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    if [ ! -e "$f" ] && [ ! -L "$f" ]; then continue; fi
    to=$2/${f##*/}
    if [ -d "$f" ] && [ ! -L "$f" ] && [ -d "$to" ] && [ ! -L "$to" ]; then
      place "$f" "$to" || return 1
    else
      if [ -L "$to" ]; then rm -f "$to" || return 1; fi
      mv -f "$f" "$to" || return 1
    fi
  done
}
place . "$a" && cd / && rm -rf "$b"
)sh";

// a: the draft folder, b: the scratch file, c: the topmost folder that was created. Removes only
// empty folders, because other processes may have put something there meanwhile.
inline constexpr std::string_view abandon = R"sh(
for f in "$a" "$b"; do if [ -n "$f" ]; then rm -rf "$f"; fi; done
if [ -n "$c" ]; then find "$c" -depth -type d -exec rmdir {} \; 2>/dev/null; fi
exit 0
)sh";

}  // namespace berth::places::remote::file_scripts

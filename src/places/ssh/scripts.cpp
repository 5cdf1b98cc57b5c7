#include "places/ssh/scripts.hpp"

#include "places/ssh/quoting.hpp"

namespace berth::places::ssh {
namespace {

constexpr std::size_t callbacks_max = 16;

// GNU and busybox have sha256sum, the BSDs and macOS have shasum.
constexpr std::string_view hash_function = R"sh(
hash_of() {
  h=$(sha256sum < "$1" 2>/dev/null || shasum -a 256 < "$1" 2>/dev/null)
  printf %s "${h%% *}"
}
)sh";

// A pid may be reused; with start time and boot id it is unique.
constexpr std::string_view alive_function = R"sh(
keeper_lives() {
  p=$(sed -n 's/^pid //p' "$d/keeper" 2>/dev/null)
  [ -n "$p" ] && [ -r "/proc/$p/stat" ] || return 1
  b=$(sed -n 's/^boot_id //p' "$d/keeper")
  [ "$b" = "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)" ] || return 1
  t=$(sed -n 's/^start_ticks //p' "$d/keeper")
  set -- $(sed 's/^.*) //' "/proc/$p/stat" 2>/dev/null)
  [ $# -ge 20 ] && [ "$1" != Z ] || return 1
  shift 19
  [ "$1" = "$t" ]
}
pause() { sleep 0.05 2>/dev/null || sleep 1; }
)sh";

}  // namespace

std::string assign(std::string_view name, std::string_view value) {
  return std::string{name} + "=" + shell_word(value) + "\n";
}

std::optional<std::string> fact(std::string_view output, std::string_view name) {
  const std::string start = "#" + std::string{name} + " ";
  std::optional<std::string> value;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    const std::string_view line = output.substr(at, end - at);
    if (line.starts_with(start)) value = line.substr(start.size());
    at = end + 1;
  }
  return value;
}

std::string remarks(std::string_view output) {
  std::string text;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    const std::string_view line = output.substr(at, end - at);
    if (!line.starts_with('#')) text.append(line).append("\n");
    at = end + 1;
  }
  return text;
}

std::vector<std::string> keeper_folders(const std::string& home, const std::string& workspace) {
  std::vector<std::string> folders;
  if (home.starts_with('/')) folders.push_back(home + "/.cache/berth");
  folders.push_back(workspace + "/.berth");
  return folders;
}

std::string survey_script(const std::string& workspace, const KeeperName& keeper) {
  return assign("w", workspace) + assign("k", keeper.file) + assign("hash", keeper.sha256) +
         assign("version", keeper.version) + std::string{hash_function} + R"sh(
mkdir -p -- "$w" && cd -- "$w" || exit 10
t=.berth-try-$$
mkdir -- "$t" && rmdir -- "$t" || exit 10
w=$(pwd)
printf '#cwd %s\n' "$w"
printf '#home %s\n' "$HOME"
printf '#system %s\n' "$(uname -s)"
printf '#machine %s\n' "$(uname -m)"
p=$(sh -lc 'printf "\n#path %s\n" "$PATH"' 2>/dev/null | sed -n 's/^#path //p' | tail -n 1)
printf '#path %s\n' "${p:-$PATH}"
for f in "$HOME/.cache/berth/$k" "$w/.berth/$k"; do
  [ -f "$f" ] || continue
  [ "$(hash_of "$f")" = "$hash" ] || { rm -f -- "$f"; continue; }
  [ "$("$f" version 2>/dev/null)" = "$version" ] || continue
  printf '#keeper %s\n' "$f"
  break
done
exit 0
)sh";
}

std::string upload_script(const std::string& folder, const KeeperName& keeper) {
  return "exec 2>&1\n" + assign("d", folder) + assign("k", keeper.file) +
         assign("hash", keeper.sha256) + assign("version", keeper.version) +
         std::string{hash_function} + R"sh(
umask 077
mkdir -p -- "$d" || exit 20
t=$d/.$k.$$
trap 'rm -f -- "$t"' EXIT
cat > "$t" || exit 20
[ "$(hash_of "$t")" = "$hash" ] || { echo 'the hash differs'; exit 21; }
chmod 700 -- "$t" || exit 20
v=$("$t" version 2>&1)
[ "$v" = "$version" ] || { printf '%s\n' "$v"; exit 22; }
mv -f -- "$t" "$d/$k" || exit 20
printf '#keeper %s\n' "$d/$k"
)sh";
}

std::string enter_script(const LeasePaths& lease) {
  return assign("w", lease.workspace) + assign("d", lease.folder()) + R"sh(
mkdir -p -- "$w" && cd -- "$w" || exit 10
printf '#cwd %s\n' "$(pwd)"
umask 077
mkdir -p -- "$d/work" || mkdir -p -- "$d/work" || exit 10
)sh";
}

std::string visit_script(const std::string& folder, const std::string& relative_to) {
  return assign("w", relative_to) + assign("d", folder) + R"sh(
cd -- "$w" 2>/dev/null
cd -- "$d" || exit 10
printf '#cwd %s\n' "$(pwd)"
)sh";
}

std::string life_script(const LeasePaths& lease) {
  return assign("d", lease.folder()) + std::string{alive_function} + R"sh(
if [ ! -e "$d/keeper" ]; then printf '#life gone\n'
elif [ -e "$d/ended" ]; then
  printf '#life ended\n'
  sed -n 's/^reason /#why /p' "$d/ended"
elif keeper_lives; then printf '#life alive\n'
else printf '#life dead\n'
fi
)sh";
}

// On SIGTERM a keeper ends its commands and then itself. Commands held by a shell script are found
// by their process groups.
std::string remove_script(const LeasePaths& lease) {
  return assign("w", lease.workspace) + assign("d", lease.folder()) + std::string{alive_function} +
         R"sh(
[ -d "$d" ] || exit 0
if [ ! -e "$d/ended" ] && keeper_lives; then
  kill -s TERM "$p"
  i=0
  while keeper_lives && [ $i -lt 300 ]; do pause; i=$((i+1)); done
  keeper_lives && kill -s KILL "$p"
fi
for g in "$d"/sh-*/group; do
  [ -f "$g" ] || continue
  : > "${g%/group}/over"
  kill -s TERM -- "-$(cat "$g")" 2>/dev/null || continue
  i=0
  while kill -s 0 -- "-$(cat "$g")" 2>/dev/null && [ $i -lt 40 ]; do pause; i=$((i+1)); done
  kill -s KILL -- "-$(cat "$g")" 2>/dev/null
done
l=$(sed -n 's/^left_behind //p' "$d/ended" 2>/dev/null)
[ "${l:-0}" = 0 ] || { echo "$l of its processes could not be killed"; exit 11; }
rm -rf -- "$d" 2>/dev/null || { sleep 1; rm -rf -- "$d"; } || exit 11
cd -- "$w" 2>/dev/null && rmdir .berth/leases .berth 2>/dev/null
exit 0
)sh";
}

std::string callback_script(const std::vector<std::string>& origins) {
  std::string script = R"sh(
ask() {
  if command -v curl >/dev/null 2>&1; then
    curl -fsS -m 5 -o /dev/null "$1/api/health"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -T 5 -t 1 -O /dev/null "$1/api/health"
  elif command -v bash >/dev/null 2>&1; then
    a=${1#http://}
    case $a in *:*) ;; *) a=$a:80 ;; esac
    bash -c 'exec 3<>"/dev/tcp/${0%:*}/${0##*:}" || exit 1
      printf "GET /api/health HTTP/1.0\r\nHost: %s\r\n\r\n" "$0" >&3
      IFS= read -r -t 5 l <&3 || exit 1
      case $l in *" 200 "*) exit 0 ;; esac
      exit 1' "$a"
  else
    echo 'the host has none of curl, wget and bash'
    return 1
  fi
}
)sh";
  const std::size_t count = std::min(origins.size(), callbacks_max);
  for (std::size_t i = 0; i < count; ++i) {
    script += "ask " + shell_word(origins[i]) + " & p" + std::to_string(i) + "=$!\n";
  }
  // In order, so that the best one that answers is chosen, not the fastest.
  for (std::size_t i = 0; i < count; ++i) {
    script += "wait $p" + std::to_string(i) + " && { printf '#api %s\\n' " +
              shell_word(origins[i]) + "; exit 0; }\n";
  }
  return script + "exit 1\n";
}

std::string remains_script(const LeasePaths& lease, const std::string& exec_id,
                           std::uint64_t offset, std::size_t bytes_max) {
  return assign("d", lease.folder()) + assign("e", exec_id) + "from=" + std::to_string(offset + 1) +
         "\nmost=" + std::to_string(bytes_max) + R"sh(
cd -- "$d" 2>/dev/null || { printf '#\n'; exit 0; }
if [ -e execs ]; then
  awk 'BEGIN { RS = "" } $1 == "exec_id" && $2 == e && /\n\.$/ { last = $0 }
    END { if (last != "") { gsub(/\n/, "\n#record ", last); print "#record " last } }' e="$e" execs
fi
if [ -e "exec-$e.out" ]; then printf '#size %s\n' "$(wc -c < "exec-$e.out" | tr -d ' ')"; fi
printf '#\n'
if [ -e "exec-$e.out" ]; then tail -c "+$from" "exec-$e.out" | head -c "$most"; fi
exit 0
)sh";
}

}  // namespace berth::places::ssh

#include "places/ssh/shell_scripts.hpp"

#include "places/ssh/quoting.hpp"
#include "places/ssh/scripts.hpp"

namespace berth::places::ssh {
namespace {

std::string in_folder(const LeasePaths& lease, const std::string& exec_id) {
  return assign("d", command_folder(lease, exec_id));
}

// Becomes the command. It has only the variables that are exported here, because the surrounding
// shell started without any and does not export its own.
std::string command_part(const keeper::Exec& exec) {
  std::string text = "(\ntrap - HUP INT TERM\nset -- \"$berth_setsid\"";
  for (const std::string& word : exec.argv) text += " " + shell_word(word);
  text += "\ncd -- " + shell_word(exec.cwd) +
          " 2>/dev/null || { echo working_directory_missing > \"$berth_d/refused\"; exit 126; }\n"
          "unset PATH PWD OLDPWD\n";
  for (const std::string& entry : exec.environment) {
    const std::size_t equals = entry.find('=');
    const std::string_view whole = entry;
    text += "export " + entry.substr(0, equals) + "=" + shell_word(whole.substr(equals + 1)) + "\n";
  }
  return text + R"sh(
berth_c=
case $2 in
  */*) [ -e "$2" ] && berth_c=$2 ;;
  *) IFS=:; set -f
    for berth_q in ${PATH-/bin:/usr/bin}; do
      [ -f "${berth_q:-.}/$2" ] || continue
      berth_c=${berth_q:-.}/$2
      [ -x "$berth_c" ] && break
    done ;;
esac
[ -n "$berth_c" ] || { echo command_not_found > "$berth_d/refused"; exit 127; }
[ -f "$berth_c" ] && [ -x "$berth_c" ] || {
  echo command_not_executable > "$berth_d/refused"; exit 126; }
: > "$berth_d/started"
exec "$@"
) <"$berth_d/in" >>"$berth_d/out" 2>>"$berth_d/err" 8>&- 9>&- &
)sh";
}

// Watches the command alongside the supervisor, and ends it if it must not continue. A tick is a
// fifth of a second if sleep supports fractions.
constexpr std::string_view watcher_part = R"sh(
berth_p=$!
echo "$berth_p" > "$berth_d/group"
(
sh -c 'echo $PPID' > "$berth_d/watcher"
end_group() {
  echo "$1" > "$berth_d/cause"
  kill -s TERM -- "-$berth_p" 2>/dev/null
  kill -s CONT -- "-$berth_p" 2>/dev/null
  g=0
  while [ "$g" -lt "$2" ] && kill -s 0 -- "-$berth_p" 2>/dev/null; do
    tick; g=$((g + berth_tick))
  done
  kill -s KILL -- "-$berth_p" 2>/dev/null
}
berth_tick=200
tick() { sleep 0.2 2>/dev/null || { sleep 1; berth_tick=1000; }; }
t=0
while [ ! -e "$berth_d/exit" ] && [ -d "$berth_d" ]; do
  tick
  t=$((t + berth_tick))
  [ -e "$berth_d/eof" ] && exec 9>&-
  if ! kill -s 0 "$$" 2>/dev/null && [ ! -e "$berth_d/exit" ]; then
    end_group lost 0
    echo "lost 137 $berth_at $(date +%s)" > "$berth_d/exit.new" &&
      mv "$berth_d/exit.new" "$berth_d/exit"
    break
  fi
  if [ -e "$berth_d/stop" ] && read -r grace < "$berth_d/stop"; then
    end_group stopped "$grace"; break
  fi
  if [ "$berth_timeout" -gt 0 ] && [ "$t" -ge "$berth_timeout" ]; then
    end_group timed_out "$berth_grace"; break
  fi
  [ $((t % 1000)) -eq 0 ] || continue
  if read -r until < "$berth_d/../deadline" && [ "$(date +%s)" -ge "$until" ]; then
    end_group lapsed 5000; break
  fi
done
) </dev/null >/dev/null 2>&1 &
exec 9>&-
)sh";

// What the command left in its process group ends with it, as with a keeper.
constexpr std::string_view supervisor_part = R"sh(
wait "$berth_p"
berth_s=$?
kill -s TERM -- "-$berth_p" 2>/dev/null && kill -s CONT -- "-$berth_p" 2>/dev/null
i=0
while kill -s 0 -- "-$berth_p" 2>/dev/null && [ $i -lt 10 ]; do
  sleep 0.2 2>/dev/null || sleep 1
  i=$((i + 1))
done
kill -s KILL -- "-$berth_p" 2>/dev/null
c=exited
[ -e "$berth_d/cause" ] && c=$(cat "$berth_d/cause")
echo "$c $berth_s $berth_at $(date +%s)" > "$berth_d/exit.new" && mv "$berth_d/exit.new" "$berth_d/exit"
)sh";

std::string supervisor_text(const LeasePaths& lease, const keeper::Exec& exec) {
  std::string text = "berth_newline=$(printf '\\nx'); berth_newline=${berth_newline%x}\n";
  text += assign("berth_d", command_folder(lease, exec.exec_id));
  text += "berth_timeout=" + std::to_string(exec.deadline_ms) + "\n";
  text += "berth_grace=" + std::to_string(exec.grace_ms) + "\n";
  text += R"sh(
trap '' HUP INT TERM
echo $$ > "$berth_d/supervisor"
berth_at=$(date +%s)
echo "$berth_at" > "$berth_d/at"
[ -p "$berth_d/in" ] && exec 9<>"$berth_d/in"
)sh";
  text += command_part(exec);
  text += watcher_part;
  text += supervisor_part;
  return text;
}

}  // namespace

std::string command_folder(const LeasePaths& lease, const std::string& exec_id) {
  return lease.folder() + "/sh-" + exec_id;
}

std::string launch_script(const LeasePaths& lease, const keeper::Exec& exec) {
  std::string script = in_folder(lease, exec.exec_id);
  script += "kind=" + std::to_string(static_cast<int>(exec.stdin_kind)) + "\n";
  script += "limit=" + std::to_string(exec.output_bytes_max) + "\n";
  script += R"sh(
u=$(umask)
umask 077
setsid=$(command -v setsid) || { echo 'there is no setsid'; exit 22; }
# Of two who try, one makes the folder and starts the command.
mkdir -- "$d" || { [ -d "$d" ] && exit 0; exit 10; }
case $kind in
  0) : > "$d/in" ;;
  1) mv -f -- "$d.in" "$d/in" ;;
  2) mkfifo -- "$d/in" ;;
esac && echo "$limit" > "$d/limit" || { rm -rf -- "$d"; exit 10; }
)sh";
  // The text reaches its shell through printf, which is a builtin in every common shell, so no
  // process has it in its arguments.
  script += "s=" + shell_word(supervisor_text(lease, exec)) + "\n";
  script += R"sh(
s="umask $u;PATH='$PATH';berth_setsid='$setsid'$berth_newline$s"
printf '%s\n' "$s" | "$setsid" env -i sh -c 'eval "$(cat)"' >/dev/null 2>"$d/log" &
)sh";
  return script;
}

std::string launched_script(const LeasePaths& lease, const std::string& exec_id) {
  return in_folder(lease, exec_id) + R"sh(
i=0
while [ ! -e "$d/started" ] && [ ! -e "$d/refused" ] && [ ! -e "$d/exit" ] && [ $i -lt 200 ]; do
  sleep 0.05 2>/dev/null || sleep 1
  i=$((i + 1))
done
rm -f -- "$d.in"
[ -p "$d/in" ] || rm -f -- "$d/in"
if [ -e "$d/refused" ]; then printf '#refused %s\n' "$(cat "$d/refused")"; exit 0; fi
[ -e "$d/started" ] || { cat "$d/log"; exit 22; }
printf '#pid %s\n#at %s\n' "$(cat "$d/group")" "$(cat "$d/at")"
)sh";
}

std::string input_script(const LeasePaths& lease, const std::string& exec_id) {
  return "exec 2>&1\n" + in_folder(lease, exec_id) + R"sh(
umask 077
cat > "$d.in.new" && mv -f -- "$d.in.new" "$d.in" || { rm -f -- "$d.in.new"; exit 10; }
printf '#bytes %s\n' "$(wc -c < "$d.in" | tr -d ' ')"
)sh";
}

std::string feed_script(const LeasePaths& lease, const std::string& exec_id) {
  return in_folder(lease, exec_id) + "exec cat > \"$d/in\"\n";
}

std::string end_of_input_script(const LeasePaths& lease, const std::string& exec_id) {
  return in_folder(lease, exec_id) + ": > \"$d/eof\"\n";
}

std::string signal_script(const LeasePaths& lease, const std::string& exec_id, int number) {
  return in_folder(lease, exec_id) +
         "[ -e \"$d/group\" ] && [ ! -e \"$d/exit\" ] || { printf '#absent 1\\n'; exit 0; }\n"
         "kill -s \"$(kill -l " +
         std::to_string(number) + ")\" -- \"-$(cat \"$d/group\")\"\n";
}

std::string stop_script(const LeasePaths& lease, const std::string& exec_id,
                        std::int64_t grace_ms) {
  return in_folder(lease, exec_id) +
         "[ -d \"$d\" ] || exit 0\n"
         "[ -e \"$d/exit\" ] || echo " +
         std::to_string(grace_ms) + " > \"$d/stop\"\n";
}

std::string renew_script(const LeasePaths& lease, std::int64_t deadline_ms) {
  // Rounded up: a deadline in whole seconds must not be earlier.
  return assign("d", lease.folder()) + "s=" + std::to_string((deadline_ms + 999) / 1000) + R"sh(
[ -d "$d" ] || exit 10
umask 077
echo $(($(date +%s) + s)) > "$d/deadline.new" && mv -f -- "$d/deadline.new" "$d/deadline"
)sh";
}

std::string poll_script(const LeasePaths& lease, const std::string& exec_id, ShellOffset from,
                        std::size_t bytes_max) {
  return in_folder(lease, exec_id) + "o=" + std::to_string(from.out) +
         "\ne=" + std::to_string(from.err) + "\nmost=" + std::to_string(bytes_max) + R"sh(
cd -- "$d" 2>/dev/null || { printf '#state absent\n#\n'; exit 0; }
lives() { [ -e "$1" ] && kill -s 0 "$(cat "$1")" 2>/dev/null; }
s=running
if [ -e exit ]; then s=$(cat exit)
elif [ -e refused ]; then s=$(cat refused)
elif [ ! -e supervisor ]; then s=absent
elif ! lives supervisor && ! lives watcher; then
  s=lost
  [ -e exit ] && s=$(cat exit)
fi
size() { if [ -e "$1" ]; then wc -c < "$1" | tr -d ' '; else echo 0; fi; }
so=$(size out)
se=$(size err)
printf '#state %s\n#out %s\n#err %s\n#limit %s\n#\n' "$s" "$so" "$se" "$(cat limit 2>/dev/null)"
part() {
  k=$(($2 - $3))
  [ $k -gt $most ] && k=$most
  [ $k -le 0 ] || tail -c "+$(($3 + 1))" "$1" | head -c $k
}
part out $so $o
part err $se $e
exit 0
)sh";
}

}  // namespace berth::places::ssh

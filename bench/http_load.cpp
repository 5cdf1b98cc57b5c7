// http_load PORT PATH BODY CONNECTIONS SECONDS: posts BODY to PATH over keep-alive connections,
// each waiting for its answer before it sends again. '@' in BODY becomes a name that is never
// repeated. Prints the requests that were answered 201, per second, and the median time of one in
// microseconds.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t answer_bytes_max = 64 * 1024;

struct Job {
  unsigned short port = 0;
  std::string path;
  std::string body;
  Clock::time_point end;
};

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "http_load: %s\n", why.c_str());
  std::exit(1);
}

int connect_to(unsigned short port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    stop("cannot connect to 127.0.0.1:" + std::to_string(port));
  }
  return fd;
}

std::string request_text(const Job& job, const std::string& name) {
  std::string body = job.body;
  if (const auto at = body.find('@'); at != std::string::npos) body.replace(at, 1, name);
  return "POST " + job.path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(job.port) +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

// The length of the whole answer, once its header is there; 0 before.
std::size_t answer_length(const std::string& text) {
  const auto head = text.find("\r\n\r\n");
  if (head == std::string::npos) return 0;
  std::string lower = text.substr(0, head);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto at = lower.find("content-length:");
  if (at == std::string::npos) stop("an answer without Content-Length: " + text);
  return head + 4 + std::strtoul(lower.c_str() + at + 15, nullptr, 10);
}

std::string exchange(int fd, const std::string& request) {
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    stop("the server closed the connection");
  }
  std::string answer;
  char chunk[4096];
  for (std::size_t length = 0; length == 0 || answer.size() < length;) {
    const ssize_t got = ::recv(fd, chunk, sizeof chunk, 0);
    if (got <= 0 || answer.size() > answer_bytes_max) stop("no whole answer: " + answer);
    answer.append(chunk, static_cast<std::size_t>(got));
    length = answer_length(answer);
  }
  return answer;
}

void work(const Job& job, unsigned worker, std::vector<double>& times) {
  const int fd = connect_to(job.port);
  for (unsigned i = 0; Clock::now() < job.end; ++i) {
    const std::string name =
        std::to_string(::getpid()) + "-" + std::to_string(worker) + "-" + std::to_string(i);
    const std::string request = request_text(job, name);
    const auto start = Clock::now();
    const std::string answer = exchange(fd, request);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    if (!answer.starts_with("HTTP/1.1 201")) stop("not created: " + answer);
  }
  ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: http_load PORT PATH BODY CONNECTIONS SECONDS\n", stderr);
    return 2;
  }
  const auto connections = std::clamp<unsigned long>(std::strtoul(argv[4], nullptr, 10), 1, 256);
  const double seconds = std::clamp(std::strtod(argv[5], nullptr), 0.1, 60.0);
  const auto start = Clock::now();
  const Job job{.port = static_cast<unsigned short>(std::strtoul(argv[1], nullptr, 10)),
                .path = argv[2],
                .body = argv[3],
                .end = start + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(seconds))};
  std::vector<std::vector<double>> times(connections);
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < connections; ++i) {
      workers.emplace_back([&job, i, &own = times[i]] { work(job, i, own); });
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  std::vector<double> all;
  for (const auto& own : times) all.insert(all.end(), own.begin(), own.end());
  std::ranges::sort(all);
  std::printf("%.1f %.1f\n", static_cast<double>(all.size()) / took, all[all.size() / 2]);
}

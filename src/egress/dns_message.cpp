#include "egress/dns_message.hpp"

namespace berth::egress {
namespace {

constexpr std::size_t header_bytes = 12;
constexpr std::size_t name_bytes_max = 255;  // with lengths and the final zero
constexpr std::size_t label_bytes_max = 63;
constexpr std::uint16_t type_opt = 41;
constexpr std::uint16_t payload_bytes = 1232;  // what we accept with EDNS

constexpr std::uint16_t flag_response = 0x8000;
constexpr std::uint16_t flag_wants_recursion = 0x0100;
constexpr std::uint16_t flag_recursion_available = 0x0080;
constexpr unsigned opcode_shift = 11;
constexpr unsigned opcode_mask = 0xf;

std::unexpected<Error> malformed(std::string why) {
  return fail(Errc::bad_request, "the DNS query " + std::move(why));
}

// Reads from the front; missing bytes are an error, never an overread.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t used() const { return used_; }
  std::size_t left() const { return bytes_.size() - used_; }
  std::optional<std::string_view> take(std::size_t size) {
    if (size > left()) return std::nullopt;
    used_ += size;
    return bytes_.substr(used_ - size, size);
  }
  std::optional<std::uint8_t> byte() {
    const auto one = take(1);
    if (!one) return std::nullopt;
    return static_cast<std::uint8_t>(one->front());
  }
  std::optional<std::uint16_t> number() {
    const auto two = take(2);
    if (!two) return std::nullopt;
    const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>((*two)[i]); };
    return static_cast<std::uint16_t>(at(0) << 8U | at(1));
  }

 private:
  std::string_view bytes_;
  std::size_t used_ = 0;
};

void put(std::string& out, std::uint16_t number) {
  out += static_cast<char>(number >> 8U);
  out += static_cast<char>(number & 0xffU);
}

struct Header {
  std::uint16_t id = 0;
  std::uint16_t flags = 0;
  std::uint16_t questions = 0;
  std::uint16_t answers = 0;
  std::uint16_t authorities = 0;
  std::uint16_t additionals = 0;

  unsigned opcode() const { return flags >> opcode_shift & opcode_mask; }
};

std::optional<Header> read_header(Reader& in) {
  if (in.left() < header_bytes) return std::nullopt;
  // A braced list is evaluated from left to right.
  const auto next = [&] { return in.number().value_or(0); };
  return Header{next(), next(), next(), next(), next(), next()};
}

std::string header_of(std::uint16_t id, std::uint16_t flags, std::uint16_t questions,
                      std::uint16_t answers, std::uint16_t additionals) {
  std::string out;
  for (const std::uint16_t number :
       {id, flags, questions, answers, std::uint16_t{0}, additionals}) {
    put(out, number);
  }
  return out;
}

Result<std::string> read_name(Reader& in) {
  const std::size_t start = in.used();
  std::string name;
  while (true) {
    const auto size = in.byte();
    if (!size) return malformed("ends within its name");
    if (*size == 0) return name;
    if (*size > label_bytes_max) return malformed("has a label that is not plain text");
    const auto label = in.take(*size);
    if (!label || in.used() - start >= name_bytes_max) return malformed("has too long a name");
    // Joined with dots, such a label would look like two.
    if (label->contains('.')) return malformed("has a dot within a label");
    if (!name.empty()) name += '.';
    name += *label;
  }
}

// Only EDNS may follow the question; its presence is recorded.
Result<> read_extension(Reader& in) {
  const auto root = in.byte();
  const auto type = in.number();
  const auto payload = in.number();
  const auto flags = in.take(4);
  const auto size = in.number();
  if (root != 0 || type != type_opt || !payload || !flags || !size || !in.take(*size)) {
    return malformed("has a record behind its question that is not EDNS");
  }
  return {};
}

}  // namespace

Result<DnsQuery> parse_dns_query(std::string_view datagram) {
  if (datagram.size() > dns_query_bytes_max) return malformed("is too long");
  Reader in{datagram};
  const std::optional<Header> header = read_header(in);
  if (!header) return malformed("is shorter than its header");
  if ((header->flags & flag_response) != 0) return malformed("is a response");
  if (header->opcode() != 0) return malformed("is another operation");
  const bool plain = header->questions == 1 && header->answers == 0 && header->authorities == 0;
  if (!plain || header->additionals > 1) return malformed("is not one question");
  DnsQuery query{.id = header->id,
                 .wants_recursion = (header->flags & flag_wants_recursion) != 0,
                 .extended = header->additionals == 1};
  BERTH_TRY(query.name, read_name(in));
  const auto type = in.number();
  const auto klass = in.number();
  if (!type || !klass) return malformed("ends within its question");
  query.type = *type;
  query.klass = *klass;
  query.question = datagram.substr(header_bytes, in.used() - header_bytes);
  if (query.extended) BERTH_DO(read_extension(in));
  if (in.left() > 0) return malformed("goes on behind its end");
  return query;
}

std::string dns_response(const DnsQuery& query, DnsCode code, const std::optional<Address>& address,
                         std::uint32_t ttl_seconds) {
  const auto flags = static_cast<std::uint16_t>(
      flag_response | flag_recursion_available |
      (query.wants_recursion ? flag_wants_recursion : 0U) | static_cast<unsigned>(code));
  std::string out = header_of(query.id, flags, 1, address ? 1 : 0, query.extended ? 1 : 0);
  out += query.question;
  if (address) {
    put(out, 0xc00c);  // the name in the question
    put(out, DnsQuery::type_a);
    put(out, DnsQuery::class_internet);
    put(out, static_cast<std::uint16_t>(ttl_seconds >> 16U));
    put(out, static_cast<std::uint16_t>(ttl_seconds));
    put(out, 4);
    out.append(address->bytes.begin(), address->bytes.begin() + 4);
  }
  if (query.extended) {
    out += '\0';
    put(out, type_opt);
    put(out, payload_bytes);
    out.append(6, '\0');
  }
  return out;
}

std::optional<std::string> dns_rejection(std::string_view datagram) {
  Reader in{datagram};
  const std::optional<Header> header = read_header(in);
  if (!header || (header->flags & flag_response) != 0) return std::nullopt;
  const DnsCode code = header->opcode() != 0 ? DnsCode::not_implemented : DnsCode::format_error;
  const unsigned kept = header->flags & (opcode_mask << opcode_shift | flag_wants_recursion);
  const auto flags = static_cast<std::uint16_t>(flag_response | kept | static_cast<unsigned>(code));
  return header_of(header->id, flags, 0, 0, 0);
}

}  // namespace berth::egress

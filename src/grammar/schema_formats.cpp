#include "grammar/schema_formats.hpp"

#include <array>
#include <vector>

#include "base/strings.hpp"

namespace quern::grammar {

namespace {

// RFC 3339, with the days that months have, leap years and years from 0001 on.
std::string date() {
  const std::string year = "(?:[1-9]\\d{3}|0[1-9]\\d\\d|00[1-9]\\d|000[1-9])";
  const std::string leap_in_century = "(?:0[48]|[2468][048]|[13579][26])";
  const std::string leap = "(?:\\d\\d" + leap_in_century + "|" + leap_in_century + "00)";
  return "(?:" + year +
         "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)"
         "|02-(?:0[1-9]|1\\d|2[0-8]))|" +
         leap + "-02-29)";
}

std::string time() {
  return "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
}

std::string hostname() {
  const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?";
  return label + "(?:\\." + label + "){0,5}";
}

std::string ipv4() {
  const std::string byte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  return byte + "(?:\\." + byte + "){3}";
}

// Groups of hexadecimal digits, at most one :: for one or more groups of zeros.
std::string ipv6() {
  const std::string h = "[0-9A-Fa-f]{1,4}";
  const std::string tail = "(?:" + h + ":" + h + "|" + ipv4() + ")";
  std::string out = "(?:(?:" + h + ":){6}" + tail + "|::(?:" + h + ":){5}" + tail;
  for (int before = 1; before <= 5; ++before)
    out += "|(?:" + h + ":){0," + std::to_string(before - 1) + "}" + h + "::(?:" + h + ":){" +
           std::to_string(5 - before) + "}" + tail;
  out += "|(?:" + h + ":){0,5}" + h + "::" + h + "|::(?:" + h + ":){0,4}" + tail + "|::" + h;
  out += "|(?:" + h + ":){0,6}" + h + "::|::)";
  return out;
}

std::string email() {
  const std::string atom = "[A-Za-z0-9_+%-]{1,24}";
  return atom + "(?:\\." + atom + "){0,2}@" + "[A-Za-z0-9](?:[A-Za-z0-9-]{0,20}[A-Za-z0-9])?"
         "(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,20}[A-Za-z0-9])?){0,2}\\.[A-Za-z]{2,12}";
}

std::string duration() {
  const std::string time = "T(?:\\d{1,4}H(?:\\d{1,4}M(?:\\d{1,4}S)?)?|\\d{1,4}M(?:\\d{1,4}S)?|\\d{1,4}S)";
  const std::string days = "(?:\\d{1,4}Y(?:\\d{1,4}M(?:\\d{1,4}D)?)?|\\d{1,4}M(?:\\d{1,4}D)?|\\d{1,4}D)";
  return "P(?:" + days + "(?:" + time + ")?|" + time + "|\\d{1,4}W)";
}

std::string uri(bool relative) {
  const std::string c = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
  const std::string rest = "(?:/" + c + "*)*(?:\\?(?:" + c + "|[/?])*)?(?:#(?:" + c + "|[/?])*)?";
  const std::string full = "[A-Za-z][A-Za-z0-9+.-]{1,15}://" + hostname() + "(?::\\d{1,5})?" + rest;
  return relative ? "(?:" + full + "|" + rest + ")" : full;
}

struct Format {
  const char* name;
  std::string pattern;
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"date", date()},
      {"time", time()},
      {"date-time", date() + "T" + time()},
      {"duration", duration()},
      {"email", email()},
      {"hostname", hostname()},
      {"ipv4", ipv4()},
      {"ipv6", ipv6()},
      {"uuid", "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"},
      {"uri", uri(false)},
      {"uri-reference", uri(true)},
      {"json-pointer", "(?:/(?:[^/~]|~[01])*)*"},
      {"relative-json-pointer", "(?:0|[1-9]\\d{0,5})(?:#|(?:/(?:[^/~]|~[01])*)*)"},
  };
  return all;
}

}  // namespace

std::optional<std::string> format_pattern(std::string_view name) {
  for (const Format& format : formats())
    if (format.name == name) return format.pattern;
  return std::nullopt;
}

std::string format_names() {
  std::vector<std::string_view> names;
  for (const Format& format : formats()) names.emplace_back(format.name);
  return base::join(names);
}

}  // namespace quern::grammar

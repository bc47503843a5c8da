// SPDX-License-Identifier: BSD-3-Clause
// Real connections over the loopback interface: threads for what all ranks do together, processes
// for ranks that die.
#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "backends/launch/socket.h"
#include "core/base/errors.h"
#include "tests/backends/launch/threaded_meeting.h"

namespace reshard::backends::launch {
namespace {

using std::chrono::milliseconds;

std::vector<std::byte> bytes_of(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
Deadline soon() { return Clock::now() + kPlenty; }

// What the body throws, as text; empty where it throws nothing.
std::string outcome(const std::function<void()>& body) {
  try {
    body();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

// A connection, as anybody may make it, to rank 0, which may not be there yet.
Socket stranger_at(const MeetingPlace& place) {
  while (true) {
    std::ifstream file(place.file);
    std::string trouble;
    int port = 0;
    if (file >> port)
      if (Socket out = connect_once("127.0.0.1", port, soon(), trouble); out.open()) return out;
    std::this_thread::sleep_for(milliseconds(1));
  }
}

// How a connection to rank 0 begins, and its frames.
constexpr std::uint64_t kMagic = 0x3164726168736572u;
struct Greeting {
  std::uint64_t magic = kMagic;
  std::int32_t rank, size;
};
template <class T>
std::span<const std::byte> raw(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

TEST_CASE("gather and broadcast carry every rank's bytes, of any length") {
  for (std::int32_t size : {2, 3, 8}) {
    std::vector<std::string> thrown = run_ranks(size, [size](Meeting& meeting) {
      for (std::size_t length :
           {std::size_t{0}, std::size_t{1}, std::size_t{200'000}, std::size_t{5'000'000}}) {
        std::vector<std::byte> mine(length + static_cast<std::size_t>(meeting.index()),
                                    std::byte(meeting.index()));
        std::vector<std::vector<std::byte>> all = meeting.gather(mine);
        bool right = all.size() == (meeting.is_root() ? static_cast<std::size_t>(size) : 0);
        for (std::size_t r = 0; r < all.size(); ++r)
          right = right && all[r] == std::vector<std::byte>(length + r, std::byte(r));
        if (!right) throw std::runtime_error("gather");
        if (meeting.broadcast(meeting.is_root() ? bytes_of("from the root")
                                                : bytes_of("ignored")) != bytes_of("from the root"))
          throw std::runtime_error("broadcast");
        meeting.check();
      }
    });
    CHECK(thrown == std::vector<std::string>(static_cast<std::size_t>(size)));
  }
}

TEST_CASE("a rank that fails ends all others with its reason") {
  for (std::int32_t bad : {0, 2}) {
    std::vector<std::string> thrown = run_ranks(4, [bad](Meeting& meeting) {
      if (meeting.index() == bad) throw BackendError("NCCL", "ncclSend", "broken", bad);
      while (true) {
        meeting.check();
        std::this_thread::sleep_for(milliseconds(1));
      }
    });
    for (std::int32_t r = 0; r < 4; ++r) {
      CAPTURE(bad, r, thrown[static_cast<std::size_t>(r)]);
      if (r != bad)
        CHECK(thrown[static_cast<std::size_t>(r)].find("rank " + std::to_string(bad) + " failed") !=
              std::string::npos);
    }
  }
  // The same for ranks that wait in a collective call, and with a reason.
  std::vector<std::string> thrown = run_ranks(3, [](Meeting& meeting) {
    if (meeting.index() == 1) return meeting.give_up("rank 1 lost its GPU");
    meeting.gather({});
    meeting.broadcast({});
  });
  CHECK(thrown[1].empty());
  for (std::size_t r : {0u, 2u}) CHECK(thrown[r].find("rank 1 lost its GPU") != std::string::npos);
}

TEST_CASE("a rank that left is missed only when it is needed") {
  std::vector<std::string> thrown = run_ranks(3, [](Meeting& meeting) {
    if (meeting.index() == 1) return;
    for (int i = 0; i < 50; ++i) {
      if (meeting.index() == 2) meeting.check();
      std::this_thread::sleep_for(milliseconds(2));
    }
    meeting.gather({});
  });
  CHECK(thrown[0].find("rank 1 has left") != std::string::npos);
  CHECK(thrown[1].empty());
}

TEST_CASE("waiting ends at the limit") {
  Deadline start = Clock::now();
  std::vector<std::string> thrown = run_ranks(
      2,
      [](Meeting& meeting) {
        meeting.is_root() ? static_cast<void>(meeting.gather({}))
                          : std::this_thread::sleep_for(milliseconds(900));
      },
      milliseconds(300));
  CHECK(thrown[0].find("nothing received from rank 1 within 300ms") != std::string::npos);
  CHECK(Clock::now() - start < milliseconds(5000));
}

TEST_CASE("ranks that never come are named") {
  MeetingPlace place = new_place();
  std::string joined;
  std::thread member([&] { joined = outcome([&] { meet_as(2, 4, place); }); });
  std::string hosted = outcome([&] { meet_as(0, 4, place, milliseconds(400)); });
  member.join();
  CHECK(hosted.find("nothing received from ranks 1,3 within 400ms") != std::string::npos);
  CHECK(joined.find("nothing received from ranks 1,3") != std::string::npos);
}

TEST_CASE("peers that do not fit are refused with the reason, on both sides") {
  MeetingPlace place = new_place();
  std::string joined, why = "rendezvous: rank 0 expects 3 ranks in the job, but rank 1 expects 5";
  std::thread member([&] { joined = outcome([&] { meet_as(1, 5, place); }); });
  std::string hosted = outcome([&] { meet_as(0, 3, place); });
  member.join();
  CHECK(hosted == why);
  CHECK(joined == why);
  for (std::int32_t rank : {-1, 0, 3}) {
    std::thread other([&] {
      Socket connection = stranger_at(place);
      connection.send(raw(Greeting{kMagic, rank, 3}), soon());
      std::byte answer{};
      CHECK(connection.receive(std::span(&answer, 1), soon()) == Delivery::Done);
    });
    hosted = outcome([&] { meet_as(0, 3, place); });
    other.join();
    CHECK(hosted == "rendezvous: a second process claims to be rank " + std::to_string(rank));
  }
}

TEST_CASE("two processes that say the same rank") {
  MeetingPlace place = new_place();
  std::vector<std::string> joined(2);
  std::thread first([&] { joined[0] = outcome([&] { meet_as(1, 3, place); }); });
  std::thread second([&] { joined[1] = outcome([&] { meet_as(1, 3, place); }); });
  std::string hosted = outcome([&] { meet_as(0, 3, place); });
  first.join();
  second.join();
  CHECK(hosted == "rendezvous: two processes claim to be rank 1");
  for (const std::string& text : joined)
    CHECK(text.find("two processes claim to be rank 1") != std::string::npos);
}

TEST_CASE("strangers are ignored, a stranger at rank 0's address is not rank 0") {
  MeetingPlace place = new_place();
  std::string joined;
  std::thread member([&] {
    Socket stranger = stranger_at(place);
    stranger.send(bytes_of("GET / HTTP/1.1\r\n\r\n"), soon());
    { Socket short_visit = stranger_at(place); }
    joined = outcome([&] { meet_as(1, 2, place)->gather(bytes_of("hello")); });
  });
  std::unique_ptr<Meeting> meeting = meet_as(0, 2, place);
  CHECK(text_of(meeting->gather({})[1]) == "hello");
  member.join();
  CHECK(joined.empty());

  int port = 0;
  Socket listener = listen_at("127.0.0.1", port);
  std::thread answering([&] {
    Socket found = accept_at(listener, soon());
    found.send(bytes_of("HTTP/1.1 400 Bad Request\r\n\r\n"), soon());
    listener = Socket();
  });
  std::string text = outcome([&] { meet_as(1, 2, {"127.0.0.1", port, ""}, milliseconds(1'000)); });
  answering.join();
  CHECK(text.find("meeting rank 0 at 127.0.0.1:" + std::to_string(port)) != std::string::npos);
}

TEST_CASE("what stands where rank 0 should is named") {
  int port = 0;
  Socket listener = listen_at("127.0.0.1", port);
  auto said = [&] {
    return outcome([&] { meet_as(1, 2, {"127.0.0.1", port, ""}, milliseconds(500)); });
  };
  // Connections wait to be taken, and nothing answers.
  CHECK(said().find("not within 500ms: rank 0 waits for other ranks") != std::string::npos);
  std::atomic<bool> ends = false;
  std::thread answering([&] {
    while (!ends) {
      Socket found = accept_at(listener, Clock::now() + milliseconds(50));
      if (found.open()) found.send(bytes_of("HTTP/1.1 400 Bad Request\r\n\r\n"), soon());
    }
  });
  CHECK(said().find("not within 500ms: the process that answers is not rank 0 of a reshard job") !=
        std::string::npos);
  ends = true;
  answering.join();
}

TEST_CASE("frames that are too long or no frames") {
  for (bool long_one : {true, false}) {
    MeetingPlace place = new_place();
    std::thread member([&] {
      Socket connection = stranger_at(place);
      connection.send(raw(Greeting{kMagic, 1, 2}), soon());
      std::vector<std::byte> welcome(24);
      connection.receive(welcome, soon());
      std::uint64_t header[3] = {long_one ? kMagic : kMagic + 1, 2,
                                 long_one ? std::uint64_t{1} << 40 : 0};
      connection.send(raw(header), soon());
      connection.receive(welcome, soon());
    });
    std::unique_ptr<Meeting> meeting = meet_as(0, 2, place);
    CHECK_THROWS_WITH(meeting->gather({}),
                      Catch::Matchers::Contains("rank 1 sent an invalid frame"));
    member.join();
  }
}

TEST_CASE("meeting by file: a file from another job is ignored, and it is gone afterwards") {
  MeetingPlace place = new_place();
  std::ofstream(place.file) << "1 127.0.0.1\n";  // nobody listens on port 1
  std::string joined;
  std::thread member([&] {
    joined = outcome([&] {
      std::unique_ptr<Meeting> meeting = meet_as(1, 2, place);
      meeting->gather({});
      if (text_of(meeting->broadcast({})) != "here") throw std::runtime_error("broadcast");
    });
  });
  std::this_thread::sleep_for(milliseconds(100));
  std::unique_ptr<Meeting> meeting = meet_as(0, 2, place);
  meeting->gather({});
  meeting->broadcast(bytes_of("here"));
  member.join();
  CHECK(joined.empty());
  CHECK_FALSE(std::filesystem::exists(place.file));
}

TEST_CASE("a meeting place where nobody listens") {
  MeetingPlace place{"127.0.0.1", 1, ""};
  CHECK_THROWS_WITH(meet({"options", 1, 2, {}, {}}, place, milliseconds(200)),
                    Catch::Matchers::Contains("meeting rank 0 at 127.0.0.1:1") &&
                        Catch::Matchers::Contains("not within 200ms"));
  CHECK_THROWS_AS(
      meet({"options", 0, 2, {}, {}}, {"", 0, "/nonexistent/folder/file"}, milliseconds(200)),
      InputError);
  CHECK(meet({}, {}, milliseconds(200))->count() == 1);
}

// In a process of its own, so that it can die.
pid_t spawn(const std::function<void()>& body) {
  pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (...) {
      ::_exit(99);
    }
    ::_exit(0);
  }
  return child;
}

TEST_CASE("a process that dies or aborts is noticed by all others at once") {
  for (bool aborts : {false, true}) {
    MeetingPlace place = new_place();
    pid_t dying = spawn([&] {
      std::unique_ptr<Meeting> meeting = meet_as(1, 3, place);
      meeting->gather({});
      meeting->broadcast({});
      if (aborts) meeting->abort(7);
      ::_exit(5);
    });
    pid_t waiting = spawn([&] {
      std::unique_ptr<Meeting> meeting = meet_as(2, 3, place);
      meeting->gather({});
      meeting->broadcast({});
      std::string text = outcome([&] { meeting->broadcast({}); });
      ::_exit(text.find(aborts ? "rank 1 ended with exit code 7"
                               : "rank 1 ended without a message") != std::string::npos
                  ? 0
                  : 98);
    });
    std::unique_ptr<Meeting> meeting = meet_as(0, 3, place);
    meeting->gather({});
    meeting->broadcast({});
    Deadline start = Clock::now();
    std::string text = outcome([&] {
      while (Clock::now() - start < kPlenty) {
        meeting->check();
        std::this_thread::sleep_for(milliseconds(1));
      }
    });
    CHECK(text.find(aborts ? "rank 1 ended with exit code 7" : "rank 1 ended without a message") !=
          std::string::npos);
    int status = 0;
    ::waitpid(dying, &status, 0);
    CHECK(WEXITSTATUS(status) == (aborts ? 7 : 5));
    ::waitpid(waiting, &status, 0);
    CHECK(WEXITSTATUS(status) == 0);
  }
}

}  // namespace
}  // namespace reshard::backends::launch

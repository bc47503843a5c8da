// SPDX-License-Identifier: BSD-3-Clause
// Real connections over the loopback: threads for what all ranks do together, processes for ranks
// that die.
#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/nccl/rendezvous.h"
#include "backends/nccl/star.h"
#include "core/base/errors.h"

namespace reshard::backends::nccl {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLimit{20000};

std::vector<std::byte> bytes_of(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A connection to the listener at this port of the loopback, as a rank.
std::unique_ptr<Star> join(int port, std::int32_t rank, std::int32_t size,
                           milliseconds limit = kLimit) {
  std::string trouble;
  Socket connection = connect_once("127.0.0.1", port, Clock::now() + limit, trouble);
  if (!connection.open()) throw BackendError("system", "connect", trouble, rank);
  return Star::join(std::move(connection), rank, size, {limit, limit}, trouble);
}

// What a rank's body throws, as text; empty where it throws nothing.
std::string outcome(const std::function<void()>& body) {
  try {
    body();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

// All ranks on threads, each calling body with its star; what each threw.
std::vector<std::string> run_ranks(std::int32_t size, const std::function<void(Star&)>& body,
                                   milliseconds limit = kLimit) {
  Listener listener("127.0.0.1", 0);
  int port = listener.port();
  std::vector<std::string> thrown(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (std::int32_t r = 1; r < size; ++r)
    threads.emplace_back([&, r] {
      thrown[static_cast<std::size_t>(r)] = outcome([&] { body(*join(port, r, size, limit)); });
    });
  thrown[0] = outcome([&] { body(*Star::host(std::move(listener), size, limit)); });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

TEST_CASE("gather and broadcast carry every rank's bytes, of any length") {
  for (std::int32_t size : {2, 3, 8}) {
    std::vector<std::string> thrown = run_ranks(size, [size](Star& star) {
      for (std::size_t length :
           {std::size_t{0}, std::size_t{1}, std::size_t{200'000}, std::size_t{5'000'000}}) {
        std::vector<std::byte> mine(length + static_cast<std::size_t>(star.index()),
                                    std::byte(star.index()));
        std::vector<std::vector<std::byte>> all = star.gather(mine);
        bool right = all.size() == (star.is_root() ? static_cast<std::size_t>(size) : 0);
        for (std::size_t r = 0; r < all.size(); ++r)
          right = right && all[r] == std::vector<std::byte>(length + r, std::byte(r));
        if (!right) throw std::runtime_error("gather");
        if (star.broadcast(star.is_root() ? bytes_of("from the root") : bytes_of("ignored")) !=
            bytes_of("from the root"))
          throw std::runtime_error("broadcast");
        star.check();
      }
    });
    CHECK(thrown == std::vector<std::string>(static_cast<std::size_t>(size)));
  }
}

TEST_CASE("a rank that fails ends all others with its reason") {
  for (std::int32_t bad : {0, 2}) {
    std::vector<std::string> thrown = run_ranks(4, [bad](Star& star) {
      if (star.index() == bad) throw BackendError("NCCL", "ncclSend", "broken", bad);
      while (true) {
        star.check();
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
  std::vector<std::string> thrown = run_ranks(3, [](Star& star) {
    if (star.index() == 1) return star.give_up("rank 1 lost its GPU");
    star.gather({});
    star.broadcast({});
  });
  CHECK(thrown[1].empty());
  for (std::size_t r : {0u, 2u}) CHECK(thrown[r].find("rank 1 lost its GPU") != std::string::npos);
}

TEST_CASE("a rank that left is missed only when it is needed") {
  std::vector<std::string> thrown = run_ranks(3, [](Star& star) {
    if (star.index() == 1) return;
    for (int i = 0; i < 50; ++i) {
      if (star.index() == 2) star.check();
      std::this_thread::sleep_for(milliseconds(2));
    }
    star.gather({});
  });
  CHECK(thrown[0].find("rank 1 has left") != std::string::npos);
  CHECK(thrown[1].empty());
}

TEST_CASE("waiting ends at the limit") {
  Deadline start = Clock::now();
  std::vector<std::string> thrown = run_ranks(
      2,
      [](Star& star) {
        star.is_root() ? static_cast<void>(star.gather({}))
                       : std::this_thread::sleep_for(milliseconds(900));
      },
      milliseconds(300));
  CHECK(thrown[0].find("no word from rank 1 within 300ms") != std::string::npos);
  CHECK(Clock::now() - start < milliseconds(5000));
}

TEST_CASE("ranks that never come are named") {
  Listener listener("127.0.0.1", 0);
  int port = listener.port();
  std::string joined;
  std::thread member([&] { joined = outcome([&] { join(port, 2, 4, kLimit); }); });
  std::string hosted = outcome([&] { Star::host(std::move(listener), 4, milliseconds(400)); });
  member.join();
  CHECK(hosted.find("no word from ranks 1,3 within 400ms") != std::string::npos);
  CHECK(joined.find("no word from ranks 1,3") != std::string::npos);
}

TEST_CASE("peers that do not fit are refused with the reason, on both sides") {
  struct Row {
    std::int32_t rank, size;
    std::string why;
  };
  for (const Row& row : {Row{1, 5, "rank 0 counts 3 ranks in the job, rank 1 counts 5"},
                         Row{0, 3, "a second process says that it is rank 0"},
                         Row{3, 3, "a second process says that it is rank 3"}}) {
    Listener listener("127.0.0.1", 0);
    int port = listener.port();
    std::string joined;
    std::thread member([&] { joined = outcome([&] { join(port, row.rank, row.size); }); });
    std::string hosted = outcome([&] { Star::host(std::move(listener), 3, kLimit); });
    member.join();
    CHECK(hosted == "rendezvous: " + row.why);
    CHECK(joined == "rendezvous: " + row.why);
  }
}

TEST_CASE("two processes that say the same rank") {
  Listener listener("127.0.0.1", 0);
  int port = listener.port();
  std::vector<std::string> joined(2);
  std::thread first([&] { joined[0] = outcome([&] { join(port, 1, 3); }); });
  std::thread second([&] { joined[1] = outcome([&] { join(port, 1, 3); }); });
  std::string hosted = outcome([&] { Star::host(std::move(listener), 3, kLimit); });
  first.join();
  second.join();
  CHECK(hosted == "rendezvous: two processes say that they are rank 1");
  for (const std::string& text : joined)
    CHECK(text.find("two processes say that they are rank 1") != std::string::npos);
}

TEST_CASE("strangers are passed over; a stranger in rank 0's place is no rank 0") {
  Listener listener("127.0.0.1", 0);
  int port = listener.port();
  std::string trouble, joined;
  std::thread member([&] {
    Socket stranger = connect_once("127.0.0.1", port, Clock::now() + kLimit, trouble);
    stranger.send(bytes_of("GET / HTTP/1.1\r\n\r\n"), Clock::now() + kLimit);
    { Socket short_visit = connect_once("127.0.0.1", port, Clock::now() + kLimit, trouble); }
    joined = outcome([&] { join(port, 1, 2)->gather(bytes_of("hello")); });
  });
  std::unique_ptr<Star> star = Star::host(std::move(listener), 2, kLimit);
  CHECK(text_of(star->gather({})[1]) == "hello");
  member.join();
  CHECK(joined.empty());

  Listener other("127.0.0.1", 0);
  Socket connection = connect_once("127.0.0.1", other.port(), Clock::now() + kLimit, trouble);
  Socket answering = std::move(*other.accept(Clock::now() + kLimit));
  answering.send(bytes_of("HTTP/1.1 400 Bad Request\r\n\r\n"), Clock::now() + kLimit);
  CHECK(Star::join(std::move(connection), 1, 2, {kLimit, kLimit}, trouble) == nullptr);
  CHECK(trouble == "what answers there is not rank 0 of a reshard job");
}

TEST_CASE("frames that are too long or no frames") {
  Listener listener("127.0.0.1", 0);
  int port = listener.port();
  std::thread member([&] {
    std::string trouble;
    Socket connection = connect_once("127.0.0.1", port, Clock::now() + kLimit, trouble);
    struct {
      std::uint64_t magic = 0x3164726168736572u;
      std::int32_t rank = 1, size = 2;
    } greeting;
    connection.send(std::as_bytes(std::span(&greeting, 1)), Clock::now() + kLimit);
    std::vector<std::byte> welcome(24);
    connection.receive(welcome, Clock::now() + kLimit);
    std::uint64_t header[3] = {greeting.magic, 2, std::uint64_t{1} << 40};
    connection.send(std::as_bytes(std::span(header)), Clock::now() + kLimit);
    connection.receive(welcome, Clock::now() + kLimit);
  });
  std::unique_ptr<Star> star = Star::host(std::move(listener), 2, kLimit);
  CHECK_THROWS_WITH(star->gather({}), Catch::Matchers::Contains("rank 1 sent what is no frame"));
  member.join();
}

TEST_CASE("meeting by file: a file from another job is passed over, and it is gone afterwards") {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("reshard_meeting_" + std::to_string(::getpid()));
  std::ofstream(path) << "1 127.0.0.1\n";  // nobody listens on port 1
  MeetingPlace place{"", 0, path.string()};
  std::vector<std::string> thrown(3);
  std::vector<std::thread> threads;
  for (std::int32_t r = 2; r >= 0; --r)
    threads.emplace_back([&, r] {
      thrown[static_cast<std::size_t>(r)] = outcome([&] {
        if (r == 0) std::this_thread::sleep_for(milliseconds(100));
        std::unique_ptr<Meeting> meeting = meet({"options", r, 3, {}, {}}, place, kLimit);
        meeting->gather({});
        if (text_of(meeting->broadcast(bytes_of("here"))) != "here")
          throw std::runtime_error("broadcast");
      });
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(thrown == std::vector<std::string>(3));
  CHECK_FALSE(std::filesystem::exists(path));
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
    Listener listener("127.0.0.1", 0);
    int port = listener.port();
    pid_t dying = spawn([&] {
      std::unique_ptr<Star> star = join(port, 1, 3);
      star->gather({});
      star->broadcast({});
      if (aborts) star->abort(7);
      ::_exit(5);
    });
    pid_t waiting = spawn([&] {
      std::unique_ptr<Star> star = join(port, 2, 3);
      star->gather({});
      star->broadcast({});
      std::string text = outcome([&] { star->broadcast({}); });
      ::_exit(text.find(aborts ? "rank 1 ended with exit code 7" : "rank 1 ended without a word") !=
                      std::string::npos
                  ? 0
                  : 98);
    });
    std::unique_ptr<Star> star = Star::host(std::move(listener), 3, kLimit);
    star->gather({});
    star->broadcast({});
    Deadline start = Clock::now();
    std::string text = outcome([&] {
      while (Clock::now() - start < kLimit) {
        star->check();
        std::this_thread::sleep_for(milliseconds(1));
      }
    });
    CHECK(text.find(aborts ? "rank 1 ended with exit code 7" : "rank 1 ended without a word") !=
          std::string::npos);
    int status = 0;
    ::waitpid(dying, &status, 0);
    CHECK(WEXITSTATUS(status) == (aborts ? 7 : 5));
    ::waitpid(waiting, &status, 0);
    CHECK(WEXITSTATUS(status) == 0);
  }
}

}  // namespace
}  // namespace reshard::backends::nccl

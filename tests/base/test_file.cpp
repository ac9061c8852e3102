#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/signals.h"
#include "support.h"

using namespace linnet;
namespace fs = std::filesystem;

namespace {

/// The exit code and line of the Error that `work` throws.
template <class Work>
std::pair<Exit, std::string> refusal(const Work& work) {
    try {
        work();
    } catch (const Error& error) {
        return {error.exit(), error.what()};
    }
    return {Exit::ok, "no error"};
}

int files_in(const std::string& folder) {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) count++;
    return count;
}

/// Runs `work` in a child process and returns its exit status, as wait gives it.
template <class Work>
int in_child(const Work& work) {
    pid_t child = fork();
    if (child == 0) {
        int code = 99;
        try {
            code = work();
        } catch (const Error& error) {
            code = static_cast<int>(error.exit());
        } catch (const BrokenPipe&) {
            code = 77;
        }
        _exit(code);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

}  // namespace

TEST_CASE("a path is kept absolute, and with what stands behind a link as it was given") {
    const std::string here = std::filesystem::current_path().string();
    CHECK(kept_path("./a//b.txt") == here + "/a/b.txt");
    CHECK(kept_path("link/../b.txt") == here + "/link/../b.txt");
    CHECK(kept_path("/a/b") == "/a/b");
}

TEST_CASE("a file is mapped and read whole; an empty one is empty") {
    test::Scratch scratch;
    std::string text(100000, 'x');
    text[70000] = '\0';
    test::write_text(scratch / "a", text);
    test::write_text(scratch / "empty", "");
    MappedFile file(scratch / "a");
    CHECK(file.text() == text);
    CHECK(file.path() == scratch / "a");
    MappedFile moved(std::move(file));
    CHECK(moved.text() == text);
    CHECK(read_file(scratch / "a") == text);
    CHECK(read_file(scratch / "a", text.size()) == text);
    CHECK(refusal([&] { read_file(scratch / "a", text.size() - 1); }).first == Exit::input);
    CHECK(MappedFile(scratch / "empty").bytes().empty());
    CHECK(read_file(scratch / "empty").empty());
    CHECK(read_file("/proc/self/stat").size() > 10);  // its size is 0 until it is read
}

TEST_CASE("directories, FIFOs, devices and missing files are refused at once") {
    test::Scratch scratch;
    REQUIRE(mkfifo((scratch / "fifo").c_str(), 0600) == 0);
    for (bool map : {true, false}) {
        auto open = [&](const std::string& path) {
            return refusal([&] { map ? void(MappedFile(path)) : void(read_file(path)); });
        };
        CHECK(open(scratch.path) ==
              std::pair{Exit::input, scratch.path + ": expected a regular file, got a directory"});
        CHECK(open(scratch / "fifo").second == (scratch / "fifo") + ": expected a regular file, got a FIFO");
        CHECK(open("/dev/null").second == "/dev/null: expected a regular file, got a device");
        CHECK(open(scratch / "none") ==
              std::pair{Exit::io, (scratch / "none") + ": No such file or directory"});
    }
}

TEST_CASE("a descriptor is closed once, with its last owner") {
    const auto is_open = [](int fd) { return ::fcntl(fd, F_GETFD) != -1; };
    int fd = -1;
    {
        Descriptor kept;
        {
            Descriptor opened(::open("/dev/null", O_RDONLY));
            fd = opened.fd;
            kept = std::move(opened);
        }
        CHECK(is_open(fd));
        const Descriptor last(std::move(kept));
        CHECK((last.fd == fd && is_open(fd)));
    }
    CHECK(!is_open(fd));
}

TEST_CASE("a written file appears whole under its name, or not at all") {
    test::Scratch scratch;
    std::string path = scratch / "out", text(200000, 'y');
    {
        AtomicFile file(path);
        file.write("head");
        file.write(text);
        file.write("tail");
        CHECK(file.position() == text.size() + 8);
        CHECK(!fs::exists(path));
    }
    CHECK(files_in(scratch.path) == 0);
    AtomicFile file(path);
    file.write("head");
    file.write(text);
    file.write("tail");
    file.commit();
    CHECK(read_file(path) == "head" + text + "tail");
    write_file(path, "new");
    CHECK(read_file(path) == "new");
    CHECK(files_in(scratch.path) == 1);
}

TEST_CASE("a file that is finished has no name before it is committed, and none where it never is") {
    test::Scratch scratch;
    const std::string path = scratch / "out";
    {
        AtomicFile file(path);
        file.write("whole");
        file.finish();
        CHECK(!fs::exists(path));
        CHECK(files_in(scratch.path) == 1);
    }
    CHECK(files_in(scratch.path) == 0);
    AtomicFile file(path, Existing::keep);
    file.write("whole");
    file.finish();
    file.commit();
    CHECK(read_file(path) == "whole");
    CHECK(files_in(scratch.path) == 1);
}

TEST_CASE("writing keeps an existing file's permissions and follows a link to it") {
    test::Scratch scratch;
    write_file(scratch / "real", "old");
    REQUIRE(chmod((scratch / "real").c_str(), 0640) == 0);
    fs::create_symlink(scratch / "real", scratch / "link");
    write_file(scratch / "link", "new");
    CHECK(fs::is_symlink(scratch / "link"));
    CHECK(read_file(scratch / "real") == "new");
    struct stat status;
    REQUIRE(stat((scratch / "real").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0640);
}

TEST_CASE(
    "writing onto a folder, a device, a FIFO, into nowhere or without a name is refused, and names the "
    "path") {
    test::Scratch scratch;
    REQUIRE(mkfifo((scratch / "fifo").c_str(), 0600) == 0);
    for (const std::string& path :
         {scratch.path, scratch / "fifo", std::string("/dev/null"), scratch / "no/such", scratch.path + "/",
          std::string(), scratch / std::string(300, 'n')}) {
        auto [exit, line] = refusal([&] { write_file(path, "text"); });
        CHECK(exit == Exit::io);
        CHECK(line.substr(0, path.size()) == path);
    }
    CHECK(fs::is_fifo(scratch / "fifo"));
    CHECK(fs::is_character_file("/dev/null"));
    CHECK(files_in(scratch.path) == 1);
}

TEST_CASE("folders are made with their parents; a file in the way is told") {
    test::Scratch scratch;
    make_folders(scratch / "a/b/c");
    make_folders(scratch / "a/b/c");
    CHECK(fs::is_directory(scratch / "a/b/c"));
    write_file(scratch / "file", "");
    CHECK(refusal([&] { make_folders(scratch / "file"); }).first == Exit::io);
    CHECK(refusal([&] { make_folders(scratch / "file/x"); }).first == Exit::io);
}

TEST_CASE("a name may stand for a file, a folder, or a link to nowhere") {
    test::Scratch scratch;
    write_file(scratch / "file", "");
    fs::create_symlink(scratch / "file", scratch / "link");
    fs::create_symlink(scratch / "nowhere", scratch / "lost");
    for (const char* name : {"file", "link", "."}) CHECK(path_exists(scratch / name));
    for (const char* name : {"lost", "absent", "file/x"}) CHECK_FALSE(path_exists(scratch / name));
    CHECK(name_taken(scratch / "lost"));
}

TEST_CASE("what was written is told with its size, in a folder that holds other files too") {
    test::Scratch scratch;
    const std::string folder = scratch / "made";
    make_folders(folder + "/inner");
    write_file(folder + "/a", std::string(700, 'a'));
    write_file(folder + "/inner/b", std::string(800, 'b'));
    CHECK(bytes_at(folder + "/a") == 700);
    CHECK(bytes_at(folder) == 1500);
    CHECK(bytes_at(scratch / "absent") == 0);
    CHECK(written_line(folder + "/a") == "wrote " + folder + "/a, 700 B");
    CHECK(written_line(folder) == "wrote " + folder + ", 1.5 kB");
    CHECK(written_line(folder, 800) == "wrote " + folder + ", 800 B");
}

TEST_CASE("stdout that is closed or full is an I/O error; a pipe without a reader is its own thing") {
    auto status = [](int wanted) { return wanted << 8; };
    auto print = [] {
        write_stdout(std::string(100000, 'z'));
        write_stdout("\n");
        flush_stdout();
        return 0;
    };
    CHECK(in_child([&] {
              freopen("/dev/full", "w", stdout);
              return print();
          }) == status(4));
    CHECK(in_child([&] {
              close(1);
              prepare_standard_streams();
              return print();
          }) == status(4));
    CHECK(in_child([&] {
              prepare_standard_streams();
              int ends[2];
              if (pipe(ends)) return 98;
              dup2(ends[1], 1);
              close(ends[0]);
              return print();
          }) == status(77));
}

TEST_CASE("no file takes the number of a standard stream that the caller closed") {
    test::Scratch scratch;
    CHECK(in_child([&] {
              for (int fd = 0; fd < 3; fd++) close(fd);
              prepare_standard_streams();
              AtomicFile file(scratch / "out");
              file.write("data");
              (void)!write(1, "stray", 5);
              (void)!write(2, "stray", 5);
              file.commit();
              return read_file(scratch / "out") == "data" ? 0 : 1;
          }) == 0);
}

TEST_CASE("the first stop signal is noted, the second one ends the process") {
    CHECK(in_child([] {
              install_stop_signals();
              if (stop_signal() != 0) return 1;
              raise(SIGTERM);
              return stop_signal() == SIGTERM ? 42 : 2;
          }) == 42 << 8);
    int status = in_child([] {
        install_stop_signals();
        raise(SIGINT);
        raise(SIGINT);
        return 1;
    });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("a full disk is an I/O error that names the file and leaves nothing behind") {
    if (geteuid() != 0) return test::skip("needs root to mount a 1 MiB tmpfs");
    test::Scratch scratch;
    test::Outcome mounted = test::run_shell("mount -t tmpfs -o size=1M none '" + scratch.path + "'");
    if (mounted.exit != 0) return test::skip("needs the right to mount a 1 MiB tmpfs");
    std::string path = scratch / "big";
    auto [exit, line] = refusal([&] { write_file(path, std::string(4 << 20, 'x')); });
    int left = files_in(scratch.path);
    test::run_shell("umount '" + scratch.path + "'");
    CHECK(exit == Exit::io);
    CHECK(line == path + ": No space left on device");
    CHECK(left == 0);
}

"""What test_debian_programs.py lets Debian's programs do.

A case is a program, its arguments and what it is for the test:
  COUNTED    one process whose instructions do not depend on addresses, the time or other processes:
             all backends count the same
  THREADED   needs cores for its threads
  SHARING    the same, and named semaphores
"""

COUNTED, THREADED, SHARING = "counted", "threaded", "sharing"

SHELL = r"""
i=0; while [ $i -lt 40 ]; do i=$((i + 1)); s=$((s + i * i)); done; echo $i $s
f() { local a=$1; shift; echo "$a:$#:$*"; return 3; }; f 'a b' c d; echo $?
case abc.txt in *.c) echo c;; a*.txt) echo text;; esac
x=banana; echo ${x#ba} ${x%%a*} ${#x} ${y:-none} $((0x1f << 3))
cat <<END | tr a-z A-Z
here $x $((6 * 7)) $(echo inner | cut -c2-)
END
cat <<'END'
not $expanded
END
seq 100 | sort -rn | head -3 | paste -sd, -
(cd sub && pwd | tail -c 5; exit 4) || echo status $?
false | true; echo pipe $?
for n in one two; do echo $n; done | while read -r w; do echo "<$w>"; done
trap 'echo usr1' USR1; kill -USR1 $$; echo after
sleep 30 & kill $!; wait $!; echo killed $?
(sleep 0.05; exit 9) & wait $!; echo waited $?
echo data >made; cat made in.txt | sort >sorted; cat sorted; rm made
set -- a b c; echo "$@" | wc -w
exec 5<in.txt; read -r first <&5; echo "$first"; exec 5<&-
missing-program 2>/dev/null; echo missing $?
sh -c 'kill -9 $$'; echo signal $?
trap 'echo bye $?' EXIT
exit 6
"""

BASH = r"""
shopt -s nullglob extglob
declare -A m=([x]=1 [y]=2); for k in x y; do echo $k ${m[$k]}; done
a=(5 3 9); echo ${a[@]/9/nine} ${#a[@]} ${a[-1]}; [[ abc =~ ^a(.)c ]] && echo ${BASH_REMATCH[1]}
mapfile -t lines <in.txt; echo ${#lines[@]} ${lines[1]^^}; printf -v q %q 'a b'; echo $q
printf '%(%F)T %.3f\n' 0 3.14159; echo {1..5} {a..e}; cat <<<"a word"
seq 100000 2>/dev/null | head -1; echo ${PIPESTATUS[@]}
read -r -d '' text < <(printf 'from a process') ; echo "$text"
coproc tr a-z A-Z; echo hello >&${COPROC[1]}; eval "exec ${COPROC[1]}>&-"; read -r up <&${COPROC[0]}
echo $up; wait
trap 'echo child ended' CHLD; (exit 3); trap - CHLD; echo $?
f() { sleep 0.02; echo $1; }; for i in 1 2 3; do f $i & wait; done
{ sleep 0.01; exit 7; } & wait -n; echo first $?
echo *.none !(sub|link)
trap 'echo cleanup; exit 5' TERM; kill -TERM $$; echo never
"""

DESCRIPTORS = r"""
echo in | cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr; wc -l /dev/stdin <in.txt
tee /dev/stderr <in.txt 2>&1 >/dev/null | wc -l; sort -o /dev/stdout in.txt | head -2
cat <in.txt /dev/fd/0 | head -1; seq 3 | sh -c 'exec cat /proc/self/fd/0' | paste -sd,
exec 7<in.txt; head -c 5 /dev/fd/7; echo; head -c 3 <&7; echo; basename "$(readlink /dev/fd/7)"
(echo no >/dev/fd/7) 2>/dev/null || echo refused
exec 8>made; echo a >&8; cat made; echo b >>/dev/fd/8; cat made; (: </dev/fd/8) && cat /dev/fd/8
for f in /dev/stdin /dev/fd/7 /dev/fd/99 /proc/self/fd/7; do
  [ -e $f ] && echo there; [ -L $f ] && echo link; [ -f $f ] && echo file; [ -p $f ] && echo pipe
done
(ls /proc/self/fd; ls /dev/fd) | grep -c '^[012]$'; (cd sub; cat /dev/fd/7 | head -1)
stat -L -c '%s %F' /dev/fd/7; [[ $(readlink /dev/fd/9 9< <(:)) == pipe:\[*\] ]] && echo a pipe
"""

JOBS = r"""
set -m
until_it_is() { until [[ $(jobs %1) == *$1* ]]; do sleep 0.01; done; echo $1; }
sleep 30 & kill -STOP %1; until_it_is Stopped; kill -CONT %1; until_it_is Running
kill %1; wait %1; echo $?
sh -c 'kill -STOP $$; echo goes on; exit 3' & wait %1 2>/dev/null; echo $?
kill -CONT %1; wait %1; echo $?
sh -c 'trap "echo hangup; exit 4" HUP; while :; do sleep 0.01; done' & sleep 0.3
kill -HUP -$!; wait $!; echo $?
sleep 20 | cat & kill -TERM -- -$(jobs -p %1); wait; echo all
"""

LUA = r"""
local t = {}; for i = 1, 5000 do t[i] = (i * 7919) % 5003 end; table.sort(t)
print(t[1], t[2500], t[5000], #t)
print(("%5.2f|%-8s|%q|%x"):format(math.pi, "left", "a\nb", 255), 7 // 2, -7 % 3, 2^53, 1 << 62)
local co = coroutine.wrap(function(a) for i = 1, 3 do a = coroutine.yield(a * i) end end)
print(co(2), co(3), co(5))
print(("the quick fox"):gsub("(%w+)", function(w) return w:reverse() end))
print(pcall(error, {code = 1}), select("#", table.unpack({1, nil, 3}, 1, 3)))
local mt = setmetatable({}, {__index = function(_, k) return k .. "!" end, __close = print})
print(mt.hello, utf8.char(228, 8364), #utf8.char(8364), string.pack("<i4", 77):byte(1, -1))
for line in io.lines("in.txt") do io.write(line, ";") end print()
local p = io.popen("echo from a shell; exit 3"); print(p:read("a"), p:close())
os.exit(2)
"""

LUAJIT = r"""
local ffi = require("ffi")
ffi.cdef("double cos(double); int abs(int); typedef struct { int a; double b; } pair;")
local s, p = 0, ffi.new("pair[?]", 1000)
for i = 0, 999 do p[i].a = i; p[i].b = i / 2 end
for n = 1, 300 do for i = 0, 999 do s = s + p[i].a * p[i].b end end
print(s, ffi.C.abs(-5), ("%.10f"):format(ffi.C.cos(1)), jit.status() and "compiles")
local t = {}; for i = 1, 20000 do t[i] = (i * 7919) % 20011 end; table.sort(t)
print(t[1], t[20000])
"""

SQL = r"""
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
  insert into t select i, hex(i * 7919), i / 3.0 from n;
create index x on t(b);
select count(*), sum(a), round(avg(c), 4), max(b) from t;
select b from t where b like '3%' order by b limit 5;
select a, sum(c) over (order by a rows 2 preceding) from t limit 4;
select json_extract('{"k":[1,{"z":5}]}', '$.k[1].z'), printf('%08.3f', 3.14159);
select date(0, 'unixepoch');
explain query plan select * from t where b = 'x';
begin; delete from t where a > 100; select count(*) from t; rollback; select count(*) from t;
create virtual table f using fts5(body); insert into f values ('a quick fox'), ('slow dog');
select rowid from f where f match 'dog';
pragma integrity_check;
select * from missing;
"""

PYTHON = r"""
import json, re, math, collections, itertools, functools
print(json.dumps({"b": [1, 2.5, None], "a": "\u20ac"}, sort_keys=True), json.loads("[1e3, true]"))
print(re.findall(r"(\w)(\d+)", "a1 b22 c333"), math.fsum([0.1] * 10), 2 ** 200 % 10 ** 9 + 7)
print(collections.Counter("abracadabra").most_common(2), list(itertools.permutations("abc"))[3])
print(functools.reduce(lambda a, b: a * b, range(1, 25)), f"{math.e:.12g}", sum(range(20000)))
print(sorted({i * i % 101 for i in range(300)})[:9], b"bytes"[::-1], hash("text") == hash("text"))
class Tree:
    def __init__(self, depth): self.kids = [Tree(depth - 1) for _ in range(3)] if depth else []
    def __len__(self): return 1 + sum(map(len, self.kids))
print(len(Tree(5)))
try: 1 / 0
except ZeroDivisionError as e: print(type(e).__name__, e)
raise SystemExit(3)
"""

PYTHON_MODULES = r"""
import bz2, ctypes, decimal, hashlib, lzma, sqlite3, struct, zlib
print(decimal.Decimal(2).sqrt(), hashlib.sha256(b"a" * 1000).hexdigest(), zlib.crc32(b"abc"))
data = b"".join(struct.pack("<I", i * i) for i in range(2000))
for m in (bz2, lzma, zlib): print(m.__name__, m.decompress(m.compress(data)) == data)
libm = ctypes.CDLL("libm.so.6"); libm.cos.restype = ctypes.c_double
libm.cos.argtypes = [ctypes.c_double]; print(libm.cos(1.0))
called = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
at = lambda p: ctypes.c_int.from_address(p).value
order = called(lambda a, b: at(a) - at(b))
a = (ctypes.c_int * 6)(5, 1, 4, 2, 6, 3)
ctypes.CDLL(None).qsort(a, 6, 4, order); print(list(a))
db = sqlite3.connect(":memory:"); print(db.execute("select upper('x') || 1").fetchall())
"""

PYTHON_PROCESSES = r"""
import os, signal, socket, subprocess, sys
run = subprocess.run
print(run(["tr", "a-z", "A-Z"], input="text", capture_output=True, text=True).stdout, flush=True)
print(run("echo $((1 + 1)); exit 7", shell=True).returncode, flush=True)
print(run(["python3", "-IS", "-c", "import os; print(os.environ['X'])"], capture_output=True,
          env={**os.environ, "X": "y"}).stdout)
a = subprocess.Popen(["seq", "1000"], stdout=subprocess.PIPE)
b = subprocess.Popen(["tail", "-1"], stdin=a.stdout, stdout=subprocess.PIPE)
a.stdout.close(); print(b.communicate()[0], a.wait())
try: run(["no-such-program"])
except FileNotFoundError as e: print(e.strerror)
slow = subprocess.Popen(["sleep", "30"])
try: slow.wait(0.05)
except subprocess.TimeoutExpired: slow.terminate(); print(slow.wait())
left, right = socket.socketpair()
pid = os.fork()
if pid == 0:
    left.close(); right.send(right.recv(100)[::-1]); os._exit(9)
right.close(); left.send(b"stressed"); print(left.recv(100), os.WEXITSTATUS(os.wait()[1]))
heard = []
for s in signal.SIGUSR1, signal.SIGALRM: signal.signal(s, lambda *a: heard.append(a[0]))
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.02); signal.pause(); print(heard)
r, w = os.pipe(); pid = os.posix_spawnp("echo", ["echo", "spawned"], os.environ,
                                        file_actions=[(os.POSIX_SPAWN_DUP2, w, 1)])
os.waitpid(pid, 0); print(os.read(r, 100))
pid = os.fork()
if pid == 0: signal.pause()
os.kill(pid, signal.SIGSTOP); s = os.waitpid(pid, os.WUNTRACED)[1]
print(os.WIFSTOPPED(s), os.WSTOPSIG(s)); os.kill(pid, signal.SIGCONT)
print(os.WIFCONTINUED(os.waitpid(pid, os.WCONTINUED)[1])); os.kill(pid, signal.SIGKILL)
i = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT); print(i.si_code, i.si_status)
print(os.waitstatus_to_exitcode(os.wait4(pid, 0)[1]), flush=True)
os.execvp("sh", ["sh", "-c", "echo executed; exit 8"])
"""

PYTHON_THREADS = r"""
import concurrent.futures, threading, queue
q = queue.Queue()
threads = [threading.Thread(target=lambda n=n: q.put(sum(range(n * 1000)))) for n in range(3)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(q.get() for _ in threads))
with concurrent.futures.ThreadPoolExecutor(2) as pool: print(list(pool.map(len, ["a", "bb"])))
"""

PYTHON_MULTIPROCESSING = r"""
import multiprocessing as mp, os, queue, signal, time
mp.set_start_method("fork")
def run(target, *arguments):
    children = [mp.Process(target=target, args=a) for a in arguments]
    for c in children: c.start()
    return children
def join(children):
    for c in children: c.join()
    return [c.exitcode for c in children]
def add(n):
    for _ in range(n):
        with lock: total.value += 1
def produce():
    for i in range(20): items.put((i, "x" * i))
    done.set()
def take_turn(me):
    with turns:
        while turn.value % 3 != me: turns.wait()
        turn.value += 1
        turns.notify_all()
def square(x): return x * x
lock, total = mp.Lock(), mp.Value("i", 0, lock=False)
print("lock", join(run(add, (100,), (100,), (100,))), total.value)
s = mp.Semaphore(1); print("semaphore", s.acquire(), s.acquire(timeout=0.02), s.release())
items, done = mp.Queue(3), mp.Event(); child = run(produce, ())
print("queue", sum(n + len(text) for n, text in (items.get() for _ in range(20))), done.wait(60))
join(child)
try: items.get(timeout=0.02)
except queue.Empty: print("empty")
turns, turn = mp.Condition(), mp.Value("i", 0)
print("condition", join(run(take_turn, (2,), (1,), (0,))), turn.value)
barrier = mp.Barrier(3)
print("barrier", join(run(lambda: os._exit(0 if barrier.wait(60) < 3 else 1), (), (), ())))
with mp.Pool(2) as pool:
    print("pool", pool.map(square, range(9)), pool.apply_async(os.getppid).get(60) == os.getpid())
child = run(time.sleep, (60,)); child[0].terminate(); print("ended", join(child))
"""

CASES = [
    ("echo", ["hello"], COUNTED),
    ("sort", ["-k2n", "in.txt"], COUNTED),
    ("sha256sum", ["sub/n.txt"], COUNTED),
    ("factor", ["1234567890", "600851475143", "18446744073709551615"], COUNTED),
    ("od", ["-A", "x", "-t", "x4", "-t", "fD", "sub/n.txt"], COUNTED),
    ("tr", ["a-z", "A-Z"], COUNTED),
    ("numfmt", ["--to=iec", "1234567", "98765432100"], COUNTED),
    ("date", ["-u", "-d", "2020-02-29 12:34:56 UTC + 3 days", "+%c %s"], COUNTED),
    ("ls", ["-lnR", "--time-style=+%s"], COUNTED),
    ("stat", ["-c", "%s %n %a %F %Y", "in.txt", "link"], COUNTED),
    ("split", ["-l", "50", "sub/n.txt"], COUNTED),
    ("cp", ["-a", "sub", "copy"], COUNTED),
    ("mawk", ["{s += $2; c[$1]++} END {for (k in c) print k, c[k]; printf \"%.3f\\n\", s / 7}",
              "in.txt"], COUNTED),
    ("cat", ["missing"], COUNTED),
    ("timeout", ["0.1", "sleep", "30"], ""),
    ("env", ["-i", "A=b", "printenv"], ""),
    ("busybox", ["sed", "-n", "s/\\(a.*\\) \\(.*\\)/\\2 \\1/p", "in.txt"], COUNTED),
    ("busybox", ["sh", "-c", "gzip -c sub/n.txt | gunzip | md5sum"], ""),
    ("busybox", ["dc", "-e", "2 200 ^ p"], COUNTED),
    ("busybox", ["find", ".", "-name", "n*", "-exec", "wc", "-l", "{}", ";"], ""),
    ("busybox", ["sh", "-c", SHELL], ""),
    ("dash", ["-c", SHELL], ""),
    ("dash", ["script", "x", "y"], ""),
    ("bash", ["-c", SHELL], ""),
    ("bash", ["-c", BASH], ""),
    ("bash", ["-c", JOBS], ""),
    ("bash", ["-c", DESCRIPTORS], ""),
    ("bash", ["-c", "for ((i = 0; i < 2000; i++)); do a+=($((s += i))); done; echo $s ${#a[@]}"],
     COUNTED),
    ("lua5.4", ["-e", LUA], ""),
    ("luajit", ["-e", LUAJIT], ""),
    ("sqlite3", [":memory:", SQL], COUNTED),
    ("sqlite3", ["file.db", SQL + ".dump f"], COUNTED),
    ("sqlite3", [":memory:", ".import --csv in.csv t", ".mode box", "select * from t order by 2",
                 ".shell echo from a shell"], ""),
    ("python3", ["-IS", "-c", PYTHON], COUNTED),
    ("python3", ["-IS", "-c", PYTHON_MODULES], ""),
    ("python3", ["-IS", "-c", PYTHON_PROCESSES], ""),
    ("python3", ["-IS", "-c", PYTHON_THREADS], THREADED),
    ("python3", ["-IS", "-c", PYTHON_MULTIPROCESSING], SHARING),
]

# Runs in any POSIX shell with `local`, without starting another program.
fibr() { local n=$1; if [ $n -lt 2 ]; then R=$n; return; fi; local a; fibr $((n-1)); a=$R; fibr $((n-2)); R=$((a+R)); }
fibr 12; echo fib $R
i=0; s=0; while [ $i -lt 500 ]; do s=$((s+i*i)); i=$((i+1)); done; echo $s
while read a b; do echo "<$a|$b>"; done < in.txt
for f in *.txt sub/*; do echo $f; done
echo hello > out1; while read -r l; do echo "$l"; done < out1
trap 'echo caught usr1' USR1; kill -USR1 $$
trap 'echo bye' EXIT
x=abcdef; echo ${x%def} ${x#abc} ${#x}; cd sub; pwd > /dev/null; cd ..
case foo in f*) echo glob;; esac
printf '%s %d %x\n' a 10 255
test -f in.txt && echo exists; [ -d sub ] && echo dir
exit 3

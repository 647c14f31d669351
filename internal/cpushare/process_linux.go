package cpushare

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// threadsMax is of how many threads a sample knows how long they waited. A server has about ten; what more there are wait for the disk.
	threadsMax = 256
	// quotaEvery is how often it is looked for a quota.
	quotaEvery = 10 * time.Second
	// tickDuration is the unit of /proc/stat.
	tickDuration = 10 * time.Millisecond
)

// process reads samples of this process. It is for one goroutine at a time.
type process struct {
	proc, cgroups string // where the file systems are
	quota         float64
	asked         time.Time
}

// Process returns what reads samples of this process, one caller at a time. It takes about 0.1 ms.
func Process() func() Sample { return (&process{proc: "/proc", cgroups: "/sys/fs/cgroup"}).sample }

func (p *process) sample() Sample {
	s := Sample{Ran: usage(unix.RUSAGE_SELF), Waited: p.waited(), Processors: float64(runtime.GOMAXPROCS(0))}
	s.Worked, s.Stolen = p.machine()
	if now := time.Now(); p.asked.IsZero() || now.Sub(p.asked) >= quotaEvery {
		p.quota, p.asked = quota(p.proc, p.cgroups), now
	}
	if p.quota > 0 {
		s.Processors = min(s.Processors, p.quota)
	}
	return s
}

// waited adds up the second figures of /proc/self/task/*/schedstat (Documentation/scheduler/sched-stats.rst), in nanoseconds. That of
// /proc/self/schedstat is of the first thread alone.
func (p *process) waited() (sum time.Duration) {
	tasks := filepath.Join(p.proc, "self/task")
	dir, err := os.Open(tasks)
	if err != nil {
		return 0
	}
	names, _ := dir.Readdirnames(threadsMax)
	_ = dir.Close()
	buffer := make([]byte, 128)
	for _, name := range names {
		fields := bytes.Fields(readInto(buffer, filepath.Join(tasks, name, "schedstat")))
		if len(fields) > 1 {
			sum += time.Duration(number(fields[1]))
		}
	}
	return sum
}

// machine is the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
func (p *process) machine() (worked, stolen time.Duration) {
	text := readInto(make([]byte, 256), filepath.Join(p.proc, "stat"))
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 {
		return 0, 0
	}
	for _, i := range []int{1, 2, 3, 6, 7} {
		worked += time.Duration(number(fields[i])) * tickDuration
	}
	return worked, time.Duration(number(fields[8])) * tickDuration
}

// readInto reads the beginning of a file of the kernel, or nothing. os.ReadFile takes twice as long.
func readInto(buffer []byte, path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return nil
	}
	return buffer[:n]
}

// number is 0 for what is none.
func number(text []byte) int64 {
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return n
}

// usedByThread is the processor time of the calling thread.
func usedByThread() time.Duration { return usage(unix.RUSAGE_THREAD) }

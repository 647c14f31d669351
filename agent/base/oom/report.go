package oom

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Upstream's expressions. What a report begins with; whose limit was reached and who is killed, since Linux 5.0 and before; who was killed.
var (
	begins = regexp.MustCompile(`invoked oom-killer:`)
	limit  = regexp.MustCompile(
		`oom-kill:constraint=.*,nodemask=.*,cpuset=.*,mems_allowed=.*,oom_memcg=(.*),task_memcg=.*,task=(.*),pid=(.*),uid=.*`)
	limitBefore5 = regexp.MustCompile(`Task in .* killed as a result of limit of (.*)`)
	killed       = regexp.MustCompile(`Killed process ([0-9]+) \((.+)\)`)
)

// facilities is how many priorities each facility has in a record; the kernel's own facility is the first.
const facilities = 8

// kernelsText is the first line of a record (priority,number,time,flags;text). It is false for what programs wrote into the log.
func kernelsText(record string) (text string, ok bool) {
	head, text, ok := strings.Cut(record, ";")
	if !ok {
		return "", false
	}
	priority, _, _ := strings.Cut(head, ",")
	if n, err := strconv.Atoi(priority); err != nil || n < 0 || n >= facilities {
		return "", false
	}
	text, _, _ = strings.Cut(text, "\n")
	return text, true
}

// A kill is what one report says. group is the control group whose limit was reached: "/" is the machine.
type kill struct {
	group   string
	process string
	pid     int
}

func (k kill) ofMachine() bool { return k.group == "/" }

// message is upstream's.
func (k kill) message() string {
	if k.process == "" || k.pid == 0 {
		return "System OOM encountered"
	}
	return fmt.Sprintf("System OOM encountered, victim process: %s, pid: %d", k.process, k.pid)
}

// A report is what was read of one; begun says that there is one.
type report struct {
	begun bool
	kill
}

// line reads on. A report ends with the line that says who is killed; what the kernel writes outside of reports is passed over.
func (r *report) line(text string) (k kill, ended bool) {
	if begins.MatchString(text) {
		*r = report{begun: true, kill: kill{group: "/"}}
		return kill{}, false
	}
	if !r.begun {
		return kill{}, false
	}
	if found := limitBefore5.FindStringSubmatch(text); found != nil {
		r.group = path.Join("/", found[1])
	}
	if found := limit.FindStringSubmatch(text); found != nil {
		return r.end(found[1], found[2], found[3])
	}
	if found := killed.FindStringSubmatch(text); found != nil {
		return r.end(r.group, found[2], found[1])
	}
	return kill{}, false
}

// end is the kill of the report, which is over. A process id that is no number is not told.
func (r *report) end(group, process, pid string) (kill, bool) {
	*r = report{}
	id, err := strconv.Atoi(pid)
	if err != nil {
		process = ""
	}
	return kill{group: group, process: process, pid: id}, true
}

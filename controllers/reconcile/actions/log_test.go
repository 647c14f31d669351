package actions

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestLines(t *testing.T) {
	key := func() string { return "default/web" }
	cause := Cause{Kind: "Deployment", Namespace: "default", Name: "web", Version: "41"}
	for name, c := range map[string]struct {
		line Line
		want string
	}{
		"a note": {Line{Note: "acts"}, "acts"},
		"done": {Line{Loop: "deployment-controller", Key: key, Wanted: Number(3), Observed: Number(0), Verb: "create", Object: "replicasets default/web-1", Code: 201, Took: 1500 * time.Microsecond, Cause: cause},
			`loop=deployment-controller object=default/web wanted=3 observed=0 done="create replicasets default/web-1" took=1.5ms because="Deployment default/web, version 41"`},
		"refused":    {Line{Loop: "l", Key: key, Verb: "update", Object: "pods a/b", Code: 409}, `loop=l object=default/web done="update pods a/b refused: 409"`},
		"failed":     {Line{Loop: "l", Verb: "update", Object: "nodes n", Failure: "no leader", Cause: Cause{Kind: "Node", Name: "n", Version: "1"}}, `loop=l object=n done="update nodes n refused: no leader" because="Node n, version 1"`},
		"texts":      {Line{Loop: "l", Key: key, Wanted: Text("a node"), Observed: Text(`0/3 are "good"`), Verb: "patch", Object: "x"}, `loop=l object=default/web wanted="a node" observed="0/3 are \"good\"" done="patch x"`},
		"unknown":    {Line{Loop: "l", Verb: "delete", Object: "x", Wanted: Text("")}, "loop=l object=- done=\"delete x\""},
		"a client's": {Line{User: "admin", Verb: "create", Object: "pods in default", Code: 201, Took: time.Millisecond}, `user=admin done="create pods in default" took=1ms`},
		"control":    {Line{Loop: "l", Key: func() string { return "a\nb" }, Verb: "delete", Object: "x"}, `loop=l object="a\nb" done="delete x"`},
	} {
		c.line.At = noon
		if got := string(c.line.Append(nil)); got != "2030-01-01T12:00:00.000Z "+c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestTheOldestLinesGo(t *testing.T) {
	log := &Log{}
	if read, next, missed, changed := log.Read(0, make([]Line, 4)); read != 0 || next != 0 || missed != 0 || changed == nil {
		t.Errorf("an empty log: %d lines, next %d, %d missed", read, next, missed)
	}
	const more = 5
	for i := range LinesMax + more {
		log.Note(noon, fmt.Sprint(i))
	}
	if len(log.lines) != LinesMax {
		t.Errorf("%d lines are kept", len(log.lines))
	}
	into := make([]Line, 3)
	read, next, missed, _ := log.Read(1, into)
	if read != 3 || missed != more-1 || into[0].Note != "5" || next != more+3 {
		t.Errorf("%d lines from %s, next %d, %d missed", read, into[0].Note, next, missed)
	}
	for n, want := range map[int64]uint64{0: LinesMax + more, 2: LinesMax + more - 2, -1: more, 2 * LinesMax: more} {
		if got := log.Last(n); got != want {
			t.Errorf("the last %d begin at %d, want %d", n, got, want)
		}
	}
}

// TestLongTextsAreCut: names of others come from paths and bodies of a megabyte.
func TestLongTextsAreCut(t *testing.T) {
	log, long := &Log{}, strings.Repeat("x", 700_000)
	log.Note(noon, long)
	log.Add(Line{
		At: noon, User: long, Verb: long, Object: long, Failure: long, Wanted: Text(long), Observed: Text(long), Loop: long,
		Cause: Cause{Kind: long, Namespace: long, Name: long, Version: long},
	})
	into := make([]Line, 2)
	log.Read(0, into)
	for i := range into {
		if text := string(into[i].Append(nil)); len(text) > 12*textBytesMax || !strings.Contains(text, "…(700,000 bytes)") {
			t.Errorf("a line of %d bytes: %.100s", len(text), text)
		}
	}
}

// TestAllLinesTogetherAreBounded: before there are LinesMax of them, the bytes of their texts count.
func TestAllLinesTogetherAreBounded(t *testing.T) {
	log, long := &Log{}, strings.Repeat("x", noteBytesMax)
	for i := range 3 * LinesMax {
		log.Note(noon, long)
		if log.bytes > BytesMax {
			t.Fatalf("%d bytes after %d lines", log.bytes, i)
		}
	}
	const kept = BytesMax / noteBytesMax
	if got := log.next - log.Last(-1); got != kept {
		t.Errorf("%d lines are kept, want %d", got, kept)
	}
	_, _, missed, _ := log.Read(0, make([]Line, 1))
	for range LinesMax {
		log.Note(noon, "short")
	}
	if got := log.next - log.Last(-1); missed != 3*LinesMax-kept || got != LinesMax || log.bytes != LinesMax*len("short") {
		t.Errorf("%d were missed; %d short lines of %d bytes", missed, got, log.bytes)
	}
}

func TestNobodyNeedsALog(t *testing.T) {
	var log *Log
	log.Note(noon, "x")
	if read, _, _, _ := log.Read(log.Last(-1), make([]Line, 1)); read != 0 {
		t.Errorf("%d lines in no log", read)
	}
}

// TestEveryLineIsReadOrMissed: readers beside writers see each line once and in order, or are told how many they missed.
func TestEveryLineIsReadOrMissed(t *testing.T) {
	const writers, each = 4, 2 * LinesMax
	log := &Log{}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range each {
				log.Add(Line{At: noon, Took: time.Duration(i)})
			}
		})
	}
	for _, size := range []int{1, 7, 256} {
		all.Go(func() {
			into, seen, from := make([]Line, size), uint64(0), uint64(0)
			for seen < writers*each {
				read, next, missed, changed := log.Read(from, into)
				seen += missed + uint64(read)
				if next != seen {
					t.Errorf("at %d after %d lines", next, seen)
					return
				}
				if from = next; read == 0 {
					<-changed
				}
			}
		})
	}
	all.Wait()
}

func TestAddingIsCheap(t *testing.T) {
	log, key := &Log{}, func() string { panic("formatted") }
	line := Line{At: noon, Loop: "l", Key: key, Verb: "create", Object: strings.Repeat("x", 100), Wanted: Number(1)}
	for range LinesMax {
		log.Add(line)
	}
	if n := testing.AllocsPerRun(1000, func() { log.Add(line) }); n > 0 {
		t.Errorf("a line costs %v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	log := &Log{}
	for b.Loop() {
		log.Add(Line{At: noon, Loop: "l", Verb: "create", Object: "pods default/web", Code: 201})
	}
}

package birth

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
)

// Revision and index begin with the time in microseconds since 1970, the term with that
// in milliseconds: no store makes as many. Where the clock is behind what is known of the
// former life, they are these gaps beyond it instead.
const (
	RevisionGap = 1_000_000_000
	IndexGap    = 1_000_000_000
	TermGap     = 1_000_000

	// numberMax is the last number that every reader of JSON takes: a clock beyond it,
	// in the year 2255, is not believed.
	numberMax = 1 << 53

	// nameBytes is the length of a name, before hex.
	nameBytes = 8
)

// Name returns a random, unique name for a life.
func Name() string {
	bytes := make([]byte, nameBytes)
	if _, err := rand.Read(bytes); err != nil {
		panic(fmt.Sprintf("no randomness: %v", err)) // documented never to happen
	}
	return hex.EncodeToString(bytes)
}

// Revision returns the first revision of a new life. last is the highest revision that is known of the former
// life.
func Revision(last uint64, begins time.Time) uint64 {
	return max(last+RevisionGap, since1970(begins, time.Microsecond))
}

// Index is the same for the log.
func Index(last uint64, begins time.Time) uint64 {
	return max(last+IndexGap, since1970(begins, time.Microsecond))
}

// Term is the same for the term.
func Term(last uint64, begins time.Time) uint64 {
	return max(last+TermGap, since1970(begins, time.Millisecond))
}

// since1970 is the time in units, 0 if it cannot be true.
func since1970(t time.Time, unit time.Duration) uint64 {
	if t.UnixMicro() < 0 || t.UnixMicro() > numberMax {
		return 0
	}
	return uint64(t.UnixMicro() / unit.Microseconds())
}

package past

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
)

var errAt = errors.New("name a time and what to read: run 'setpoint at 10m get pods' or 'setpoint at 10m describe pod/web'")

// readers are the commands of kubectl that only read objects.
var readers = []string{"get", "describe"}

// At is `setpoint at`. It runs kubectl with what is left of the arguments, over configurations that are changed; giveUp ends it with one
// sentence. Complete is kubectl's completion.
func At(
	kubectl func(args []string, change func(*rest.Config)) error, complete Complete, mistake func(error) error, giveUp func(error),
) *cobra.Command {
	return &cobra.Command{
		Use:   "at TIME get|describe ...",
		Short: "kubectl get and describe of a time that was",
		Long: "Run kubectl get or describe over objects as they were at a time: 10m, '10 minutes ago', 2h30m, '2006-01-02 15:04:05' (this\n" +
			"machine's zone) or 2006-01-02T15:04:05Z. Arguments and flags behind the time are kubectl's. Nothing can be changed, watched or\n" +
			"logged there. Ages are told as of now, and kinds are those that there are now.\n\n" +
			"Whoever may read the objects now may read what they were. History has by default the last 24 hours\n" +
			"('setpoint server --history-retention').",
		Example: "  setpoint at '10 minutes ago' get pods -n shop -o wide\n  setpoint at 2h describe deploy/web\n" +
			"  setpoint at 2026-03-04T10:30:00Z get cm settings -o yaml",
		DisableFlagParsing: true,
		ValidArgsFunction:  completeAt(complete),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
				return cmd.Help()
			}
			at, rest, err := splitAt(args, time.Now())
			if err != nil {
				return mistake(err)
			}
			m := &momentReader{ctx: cmd.Context(), at: at, giveUp: giveUp}
			return kubectl(rest, m.change)
		},
	}
}

// splitAt reads the time, which may be several arguments, and returns it with those of kubectl.
func splitAt(args []string, now time.Time) (time.Time, []string, error) {
	i := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(readers, arg) })
	if i < 1 {
		return time.Time{}, nil, errAt
	}
	at, err := ParseTime(strings.Join(args[:i], " "), now)
	return at, args[i:], err
}

// momentReader has clients read what was at a time.
type momentReader struct {
	ctx    context.Context // of the command
	at     time.Time
	giveUp func(error)

	once     sync.Once
	revision uint64
}

// change asks for the revision of the time when the first client is made.
func (m *momentReader) change(config *rest.Config) {
	m.once.Do(func() {
		ctx, cancel := context.WithTimeout(m.ctx, askLimit)
		defer cancel()
		moment, err := admin.FetchMoment(ctx, config, m.at)
		if err != nil {
			m.giveUp(err)
		}
		m.revision = moment.ResourceVersion
	})
	config.Wrap(Exactly(m.revision))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return lastWord{next, m.giveUp} })
}

// lastWord ends the command at the first request that the past refuses: kubectl would wrap the sentence in its own.
type lastWord struct {
	next   http.RoundTripper
	giveUp func(error)
}

// RoundTrip implements http.RoundTripper.
func (l lastWord) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if errors.Is(err, ErrReadOnly) {
		l.giveUp(ErrReadOnly)
	}
	return response, err
}

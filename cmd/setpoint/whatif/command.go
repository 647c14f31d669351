package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
)

const long = "Say what would happen: to a copy of the cluster in this process's memory, whose nodes are simulated, it is done, and its control loops\n" +
	"and scheduler run on a clock of their own until nothing changes. Told are the pods that would be made, move, end and wait, with the reasons;\n" +
	"budgets that would be in the way; Services without endpoints, and for how long; what quotas would refuse; and the order of events.\n\n" +
	"The cluster is read as one moment, and never written to. The answer names what the copy assumes: see docs/what-if.md.\n" +
	"A what-if reads all of the cluster, so it is for administrators. Exit code 1 if the copy does not become quiet."

const examples = "  setpoint what-if --drain machine-3\n  setpoint what-if --lose machine-1,machine-2\n" +
	"  setpoint what-if --scale deployment/web=20 -n shop\n  setpoint what-if -f web.yaml --for 1h -o json"

// once is a flag that is said once: a second value would replace the first without a word.
type once struct {
	of   *string
	said bool
}

var errTwice = errors.New("say it once: one thing is to happen")

// String implements pflag.Value.
func (o *once) String() string {
	if o.of == nil {
		return ""
	}
	return *o.of
}

// Set implements pflag.Value.
func (o *once) Set(value string) error {
	if o.said {
		return errTwice
	}
	*o.of, o.said = value, true
	return nil
}

// Type implements pflag.Value.
func (o *once) Type() string { return "string" }

// Shell is what all commands share.
type Shell struct {
	// KubeconfigUsage and OutputUsage describe the flags of these names.
	KubeconfigUsage, OutputUsage string
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// AskServers asks one server after the other until one answers, each for a limited time.
	AskServers func(ctx context.Context, kubeconfig string, limit time.Duration, ask func(context.Context, *rest.Config) error) error
	// Namespace is that of the kubeconfig's context.
	Namespace func(kubeconfig string) (string, error)
	// Print prints a value as --output wants it, CheckOutput says whether it can.
	Print       func(w io.Writer, output string, value any, table func(io.Writer) error) error
	CheckOutput func(output string) error
	// Mistake is an error of the command line.
	Mistake func(error) error
	// Escaped writes what others have named.
	Escaped func(io.Writer) io.Writer
}

// Command is `setpoint what-if`.
func (s *Shell) Command() *cobra.Command {
	var q Question
	var kubeconfig, output string
	cmd := &cobra.Command{Use: "what-if", Short: "Say what would happen if a node were drained or lost, or objects changed", Long: long, Example: examples}
	flags := cmd.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
	flags.StringVarP(&output, "output", "o", "table", s.OutputUsage)
	flags.VarP(&once{of: &q.File}, "file", "f", "a manifest is applied, as with kubectl apply; - is standard input")
	flags.Var(&once{of: &q.Drain}, "drain", "a node is drained, but for the pods of DaemonSets")
	flags.StringSliceVar(&q.Lose, "lose", nil, "nodes lose their power, all at once")
	flags.Var(&once{of: &q.Scale}, "scale", "an object is scaled, KIND/NAME=N")
	flags.Var(&once{of: &q.Delete}, "delete", "an object is deleted, KIND/NAME")
	flags.StringVarP(&q.Namespace, "namespace", "n", "", "namespace of objects without one (default: that of the kubeconfig's context)")
	flags.DurationVar(&q.For, "for", forDefault, "how much time passes at most")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err = q.Validate(); err != nil {
			return s.Mistake(err)
		}
		if err = s.CheckOutput(output); err != nil {
			return err
		}
		if q.Namespace == "" {
			if q.Namespace, err = s.Namespace(kubeconfig); err != nil {
				return err
			}
		}
		return s.ask(cmd, kubeconfig, output, q)
	}
	return s.Finish(cmd)
}

func (s *Shell) ask(cmd *cobra.Command, kubeconfig, output string, q Question) error {
	var answer *Answer
	var failed error
	all, cancel := context.WithTimeout(cmd.Context(), workMax)
	defer cancel()
	err := s.AskServers(all, kubeconfig, workMax, func(ctx context.Context, config *rest.Config) error {
		f, err := open(ctx, config, forkBytesMax)
		if err != nil && anotherMay(ctx, err) {
			return err
		}
		if err != nil {
			failed = worded(ctx, err)
			return nil
		}
		answer, failed = f.ask(ctx, q, cmd.InOrStdin())
		return nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if err := s.Print(cmd.OutOrStdout(), output, answer, func(w io.Writer) error { return answer.print(s.Escaped(w)) }); err != nil {
		return err
	}
	if !answer.Quiet {
		return fmt.Errorf("after %v it still changes: %s; --for gives it more time", answer.Lasted, strings.Join(answer.Restless, ", "))
	}
	return nil
}

// anotherMay says whether another server may answer where one has failed: if it cannot be reached, or is not there for now.
func anotherMay(ctx context.Context, err error) bool {
	if refused, ok := errors.AsType[*admin.Refusal](err); ok {
		return refused.StatusCode >= http.StatusInternalServerError || refused.StatusCode == http.StatusTooManyRequests
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError || status.Status().Code == http.StatusTooManyRequests
	}
	_, network := errors.AsType[net.Error](err)
	return network && ctx.Err() == nil
}

// eventsShown is how many events the table has.
const eventsShown = 200

func (a *Answer) print(w io.Writer) error {
	p := &printer{w: w}
	p.line("If %s:", a.What)
	if a.Quiet {
		p.line("nothing changes any more after %v. %d pods made, %d moved, %d ended, %d pending, %d not ready.",
			a.Lasted, len(a.Made), len(a.Moved), len(a.Ended), len(a.Pending), len(a.NotReady))
	} else {
		p.line("it still changes after %v. %d pods made, %d moved, %d ended, %d pending, %d not ready.",
			a.Lasted, len(a.Made), len(a.Moved), len(a.Ended), len(a.Pending), len(a.NotReady))
	}
	p.pods("MADE", a.Made)
	p.section("MOVED", counted(a.Moved, func(m Move) string {
		return fmt.Sprintf("%s in %s: %s to %s", m.From.Owner, m.From.Namespace, m.From.where(), m.To.where())
	}))
	p.pods("ENDED", a.Ended)
	p.pods("PENDING", a.Pending)
	p.pods("NOT READY", a.NotReady)
	p.budgets(a.Budgets)
	p.services(a.Services)
	for _, q := range a.Quotas {
		p.section("QUOTA", []string{q.line()})
	}
	for _, q := range a.Refused {
		p.section("REFUSED", []string{q.line()})
	}
	p.section("DUE LATER", a.Due)
	p.events(a.Events)
	p.section("ASSUMED", a.Assumptions)
	return p.err
}

func (q Quota) line() string {
	return fmt.Sprintf("%s in %s after %v: %s", q.Object, q.Namespace, q.At, q.Said)
}

func (p Pod) where() string {
	if p.Node == "" {
		return "no node"
	}
	return p.Node
}

func (p Pod) line() string {
	name := p.Owner
	if name == "" {
		name = "pod/" + p.Name
	}
	line := fmt.Sprintf("%s in %s on %s", name, p.Namespace, p.where())
	if p.Before {
		line += ", as before"
	}
	return line
}

// counted are lines of which equal ones are told once, in their order.
func counted[T any](of []T, line func(T) string) (lines []string) {
	count := map[string]int{}
	for _, one := range of {
		text := line(one)
		if count[text]++; count[text] == 1 {
			lines = append(lines, text)
		}
	}
	for i, text := range lines {
		lines[i] = fmt.Sprintf("%d x %s", count[text], text)
	}
	return lines
}

// printer writes sections until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) section(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.line("\n%s", title)
	for _, line := range lines {
		p.line("  %s", line)
	}
}

// pods prints those of one owner on one node in one line, and why the first of an owner waits.
func (p *printer) pods(title string, pods []Pod) {
	p.section(title, counted(pods, Pod.line))
	told := map[string]bool{}
	for _, pod := range pods {
		if key := pod.Namespace + "/" + pod.Owner + "/" + strings.Join(pod.Why, "\n"); len(pod.Why) > 0 && !told[key] {
			told[key] = true
			p.line("    why %s in %s:", cmp.Or(pod.Owner, "pod/"+pod.Name), pod.Namespace)
			for _, why := range pod.Why {
				p.line("      %s", why)
			}
		}
	}
}

func (p *printer) budgets(budgets []Budget) {
	var lines []string
	for _, b := range budgets {
		line := fmt.Sprintf("%s in %s", b.Name, b.Namespace)
		if b.Refused > 0 {
			line += fmt.Sprintf(" refuses %d evictions: %s", b.Refused, b.Said)
		}
		if b.Broken > 0 {
			line += fmt.Sprintf(" is not kept for %v", b.Broken)
		}
		if b.Lasts {
			line += ", and not at the end"
		}
		lines = append(lines, line)
	}
	p.section("BUDGETS", lines)
}

func (p *printer) services(services []Service) {
	var lines []string
	for _, s := range services {
		line := fmt.Sprintf("%s in %s: none from %v on, for %v", s.Name, s.Namespace, s.From, s.For)
		if s.Lasts {
			line = fmt.Sprintf("%s in %s: none from %v on, to the end", s.Name, s.Namespace, s.From)
		}
		lines = append(lines, line)
	}
	p.section("SERVICES WITHOUT ENDPOINTS", lines)
}

func (p *printer) events(events []Event) {
	var lines []string
	for _, e := range events[:min(len(events), eventsShown)] {
		line := fmt.Sprintf("%6s  %s", e.At, e.What)
		if e.Count > 1 {
			line = fmt.Sprintf("%s (%d times)", line, e.Count)
		}
		lines = append(lines, line)
	}
	if more := len(events) - eventsShown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: -o json has all", more))
	}
	p.section("EVENTS", slices.Clip(lines))
}

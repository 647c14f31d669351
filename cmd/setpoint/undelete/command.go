package undelete

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	shell "github.com/setpoint-io/setpoint/cmd/setpoint/past"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/past"
)

// askLimit bounds how long one server may take to say what history knows.
const askLimit = 30 * time.Second

var errArgs = errors.New("name one object, as KIND/NAME: run 'setpoint undelete namespace/shop'")

// options are the flags of the command.
type options struct {
	*shell.Shell
	kubeconfig, output, namespace, at string
	dryRun                            bool
}

// New is `setpoint undelete`.
func New(s *shell.Shell) *cobra.Command {
	o := &options{Shell: s}
	cmd := &cobra.Command{
		Use:   "undelete KIND/NAME",
		Short: "Give back what was deleted: an object, or a namespace with all that was in it",
		Long: "Give back an object as it was before it was deleted, or a namespace with all that was in it, values of Secrets too. Objects are\n" +
			"created anew with your own rights: owners before what they own, with new uids, and references that name them. What controllers\n" +
			"make again is left to them (ReplicaSets, pods, Endpoints), and so is what each namespace gets by itself; Jobs and pods that had\n" +
			"ended, Events and Leases are left out. Services get new cluster IPs; claims keep volumes that still exist and were theirs.\n\n" +
			"All or nothing: what can be judged is judged before anything is made, by a dry run of the servers. In a namespace that does not exist\n" +
			"yet these are the namespace itself and your rights; if something else is refused there, the namespace is removed again.\n" +
			"History has what was, by default of the last 24 hours ('setpoint server --history-retention').",
		Example: "  setpoint undelete namespace/shop --dry-run\n  setpoint undelete cm/settings -n shop\n  setpoint undelete deploy/web --at '10 minutes ago'",
	}
	s.AddFlags(cmd, &o.kubeconfig, &o.output)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace of the object (default: that of the kubeconfig's context)")
	cmd.Flags().StringVar(&o.at, "at", "", "as it was then: 10m, '10 minutes ago', 2006-01-02T15:04:05Z (default: just before its last deletion began)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say what would be given back, and whether it would be refused")
	cmd.RunE = o.run
	cmd = s.Finish(cmd)
	cmd.Args = cobra.ArbitraryArgs // run judges them
	cmd.ValidArgsFunction = s.CompleteDeleted
	return cmd
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	question, err := shell.QuestionOf(args, errArgs)
	if err != nil {
		return o.Mistake(err)
	}
	var at time.Time
	if o.at != "" {
		if at, err = shell.ParseTime(o.at, time.Now()); err != nil {
			return o.Mistake(fmt.Errorf("--at: %w", err))
		}
	}
	if err := o.CheckOutput(o.output); err != nil {
		return err
	}
	if question.Namespace, err = o.Namespace(o.namespace, o.kubeconfig); err != nil {
		return err
	}
	report, err := o.giveBack(cmd.Context(), question, at)
	if err != nil {
		return err
	}
	return o.Print(cmd.OutOrStdout(), o.output, report, func(w io.Writer) error { return report.print(o.Escaped(w)) })
}

// known is what history said, and the server that said it.
type known struct {
	config *rest.Config
	answer past.Answer
	moment past.Moment
}

// ask asks servers until one answers; the same is asked all the rest.
func (o *options) ask(ctx context.Context, q past.Question, at time.Time) (k known, err error) {
	err = o.AskServers(ctx, o.kubeconfig, askLimit, func(ctx context.Context, config *rest.Config) (err error) {
		k.config = config
		if k.answer, err = admin.FetchHistory(ctx, config, q); err != nil || at.IsZero() {
			return err
		}
		k.moment, err = admin.FetchMoment(ctx, config, at)
		return err
	})
	return k, err
}

func (o *options) giveBack(ctx context.Context, q past.Question, at time.Time) (*report, error) {
	told, err := o.ask(ctx, q, at)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", q.Kind, q.Name, err)
	}
	object := told.answer.Object
	c, err := open(told.config)
	if err != nil {
		return nil, err
	}
	k, ok := c.kindOf(schema.GroupResource{Group: object.Group, Resource: object.Resource})
	if !ok {
		return nil, fmt.Errorf("%s cannot be created", object)
	}
	if err := c.isThere(ctx, k, object); err != nil {
		return nil, err
	}
	revision := told.moment.ResourceVersion
	if at.IsZero() {
		if revision, err = beforeDeletion(told.answer); err != nil {
			return nil, fmt.Errorf("%s: %w", object, err)
		}
	}
	if err := c.goTo(told.config, revision); err != nil {
		return nil, err
	}
	first, err := c.pastOf(ctx, k, object)
	if err != nil {
		return nil, err
	}
	r := &report{Object: object, ResourceVersion: revision, DryRun: o.dryRun}
	return r, c.carryOut(ctx, partOf(k, first), r)
}

// carryOut makes the plan for an object or a namespace, judges it, and does it.
func (c *cluster) carryOut(ctx context.Context, first *part, r *report) error {
	parts := []*part{first}
	isNamespace := first.resource == namespaces
	if isNamespace {
		contents, err := c.contents(ctx, first.object.GetName())
		if err != nil {
			return err
		}
		parts = contents
	}
	w, err := c.worldOf(ctx, parts)
	if err != nil {
		return err
	}
	p := newPlan(parts, w)
	switch {
	case isNamespace:
		clean(first, w)
		p.waves = append([][]*part{{first}}, p.waves...)
	case len(p.leftOut) > 0:
		return fmt.Errorf("%s is not given back: %s", first, p.leftOut[0].why)
	}
	if err := c.judge(ctx, p); err != nil {
		return err
	}
	g := &giver{cluster: c, plan: p, uids: map[types.UID]types.UID{}}
	maps.Copy(g.uids, w.owners)
	if !r.DryRun {
		if err := g.give(ctx); err != nil {
			return err
		}
	}
	r.fill(g)
	return nil
}

package past

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/past"
)

// completeLimit bounds how long a shell waits for what history knows.
const completeLimit = 3 * time.Second

// Complete completes arguments as cobra asks.
type Complete = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// times are what is offered where a time is wanted.
var times = []string{"10m\tten minutes ago", "1h\tan hour ago", "1d\tyesterday at this time", "now"}

func offered(choices []string) ([]string, cobra.ShellCompDirective) {
	return choices, cobra.ShellCompDirectiveNoFileComp
}

// completeAt completes a time, get or describe, and then as kubectl does.
func completeAt(kubectl Complete) Complete {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		reader := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(readers, arg) })
		switch {
		case len(args) == 0:
			return offered(times)
		case reader < 0:
			return offered(readers)
		}
		return kubectl(cmd, args[reader:], toComplete)
	}
}

// completeDiff completes one time, then another or a kind.
func (s *Shell) completeDiff(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return offered(times)
	}
	if len(args) > 2 || len(args) == 2 && !isTime(args[1]) {
		return offered(nil)
	}
	kinds, directive := s.CompleteObject(cmd, nil, toComplete)
	if len(args) == 1 {
		kinds = slices.Concat(times, kinds)
	}
	return kinds, directive
}

func isTime(text string) bool {
	_, err := ParseTime(text, time.Now())
	return err == nil
}

// CompleteDeleted completes KIND/NAME with the names of what was deleted, as far as history knows and the user may list it.
func (s *Shell) CompleteDeleted(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	kind, _, named := strings.Cut(toComplete, "/")
	if len(args) > 0 {
		return offered(nil)
	}
	if !named {
		return s.CompleteObject(cmd, nil, toComplete)
	}
	found, err := s.deleted(cmd, kind)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, name := range DeletedNames(&found) {
		names = append(names, kind+"/"+name)
	}
	return offered(names)
}

// deleted asks for all that history has of a kind.
func (s *Shell) deleted(cmd *cobra.Command, kind string) (found past.Difference, err error) {
	kubeconfig := cmd.Flag("kubeconfig").Value.String()
	namespace, err := s.Namespace(cmd.Flag("namespace").Value.String(), kubeconfig)
	if err != nil {
		return found, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeLimit)
	defer cancel()
	err = s.AskServers(ctx, kubeconfig, completeLimit, func(ctx context.Context, config *rest.Config) (err error) {
		found, err = admin.FetchDiff(ctx, config, past.Span{Kind: kind, Namespace: namespace})
		return err
	})
	return found, err
}

// DeletedNames are the names of the objects that are not there at the end.
func DeletedNames(d *past.Difference) (names []string) {
	for _, group := range d.Groups {
		for i := range group.Objects {
			if c := &group.Objects[i]; strings.HasSuffix(c.Did, "deleted") {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

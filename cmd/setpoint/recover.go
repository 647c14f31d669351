package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/server/offline"
)

var errNotConfirmed = errors.New("not confirmed: nothing was changed")

// recoverFlags are what `cluster recover` may be told beside the server.
type recoverFlags struct {
	options      offline.Options
	compare      []string
	inspect, yes bool
}

func newClusterRecover() *cobra.Command {
	var flags recoverFlags
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Continue with one surviving server when the majority is lost for good",
		Long: "Continue with one surviving server when the majority of the servers is lost for good.\n\n" +
			" 1. Stop all servers. On each survivor, run it with --inspect and keep what it prints.\n" +
			" 2. Choose the server with the highest lastTerm, and of those with the highest lastIndex: it has the most.\n" +
			" 3. Run it there, with --compare naming what the others printed. It asks before it changes anything.\n" +
			" 4. Start that server, then the others: they get its state and become members again by themselves. One that\n" +
			"    has data of the life that ends here stops when it hears so; start it once more.\n\n" +
			"What the lost servers had acknowledged and this one never got, is lost. It refuses when a majority still\n" +
			"answers, when another survivor has more, and when the data is damaged.",
		Example: "  setpoint cluster recover --data-dir /var/lib/setpoint --name server-2 --initial-servers server-1=a:6443,server-2=b:6443,server-3=c:6443 --trust-dir /etc/setpoint --inspect",
	}
	storeFlags(cmd, &flags.options)
	cmd.Flags().BoolVar(&flags.inspect, "inspect", false, "print what this data directory holds as JSON, and change nothing")
	cmd.Flags().
		StringSliceVar(&flags.compare, "compare", nil, "the other survivors: data directories, or files with what --inspect printed")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "do not ask, for scripts")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if flags.options.Logger, err = newLogger(cmd); err != nil {
			return err
		}
		if err := flags.options.Validate(); err != nil {
			return usageError{err}
		}
		return clusterRecover(cmd, &flags)
	}
	return withSources(cmd)
}

func clusterRecover(cmd *cobra.Command, flags *recoverFlags) error {
	recovery, err := offline.OpenRecovery(cmd.Context(), flags.options)
	if err != nil {
		return err
	}
	defer recovery.Close()
	if flags.inspect {
		return printAs(cmd.OutOrStdout(), "json", recovery.Report, nil)
	}
	reports := []offline.StoredReport{recovery.Report}
	for _, path := range flags.compare {
		other, err := recovery.Compare(cmd.Context(), path)
		if err != nil {
			return err
		}
		reports = append(reports, other)
	}
	printStored(cmd.OutOrStdout(), reports)
	if err := recovery.Check(cmd.Context()); err != nil {
		return err
	}
	if err := confirm(cmd, flags); err != nil {
		return err
	}
	revision, err := recovery.Run(cmd.Context())
	if err != nil {
		return err
	}
	fmt.Fprintf(
		cmd.OutOrStdout(),
		"%s is the only server with a vote now and begins at revision %d\nstart it, then the others: they get its state and their votes by themselves\n",
		flags.options.Name,
		revision,
	)
	return nil
}

func printStored(w io.Writer, reports []offline.StoredReport) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "SERVER\tLAST TERM\tLAST INDEX\tTERM\tREVISION\tOBJECTS")
	for i, r := range reports {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d", r.Server, r.LastTerm, r.LastIndex, r.Term)
		if i == 0 {
			fmt.Fprintf(t, "\t%d\t%d", r.Revision, r.Objects)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // standard output is gone if this fails
	for _, m := range reports[0].Members {
		role := "learner"
		if m.Voter {
			role = "voter"
		}
		fmt.Fprintf(w, "member %s at %s, %s\n", m.Name, m.Address, role)
	}
}

// confirm asks for the server's name.
func confirm(cmd *cobra.Command, flags *recoverFlags) error {
	if flags.yes {
		return nil
	}
	fmt.Fprintf(
		cmd.OutOrStdout(),
		"\nWhat the other servers have acknowledged and %s does not have, is lost. All others must be stopped.\nType %s to go on: ",
		flags.options.Name,
		flags.options.Name,
	)
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != flags.options.Name {
		return errNotConfirmed
	}
	return nil
}

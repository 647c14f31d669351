package main

import (
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/cmd/setpoint/clusterstatus"
)

// statusTimeout bounds how long the servers, asked at once, may take to tell their status.
const statusTimeout = clusterstatus.Timeout

var (
	errNobodyAnswers = errors.New("no server answers")
	errPersonNeeded  = errors.New("this cluster needs somebody: the last line says why")
)

func newClusterStatus() *cobra.Command {
	var kubeconfig, output string
	cmd := &cobra.Command{Use: "status", Short: "Show replicas, leader, disk, gossip and who runs the control loops",
		Long: "Show the members of the control plane, whichever of them the kubeconfig names, and at the end whether somebody is needed:\n" +
			"a member that does not answer, no leader, a disk that is full, a certificate that ends. The exit code is 1 then."}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		configs, err := contexts(kubeconfig)
		if err != nil {
			return err
		}
		report := clusterstatus.Fetch(cmd.Context(), configs)
		if err := printStatus(cmd.OutOrStdout(), report, output); err != nil {
			return err
		}
		switch {
		case report.Silent():
			return errNobodyAnswers
		case report.Verdict.PersonNeeded:
			return errPersonNeeded
		}
		return nil
	}
	return withSources(cmd)
}

func printStatus(w io.Writer, report clusterstatus.Report, output string) error {
	return printAs(w, output, report, func(w io.Writer) error {
		if !wantsColor(w) {
			return report.Print(w)
		}
		var plain strings.Builder
		if err := report.Print(&plain); err != nil {
			return err
		}
		_, err := io.WriteString(w, colored(plain.String()))
		return err
	})
}

// remarkable are the words of the table that have a colour: red is lost, yellow is to be looked at.
var remarkable = regexp.MustCompile(`(?m)\b(unreachable|no leader|dead)\b|\b(absent|low|full)\b|\bleader\b|^[A-Z].*$`)

// colored colours a table when its columns are laid out.
func colored(table string) string {
	return remarkable.ReplaceAllStringFunc(table, func(word string) string {
		switch word {
		case "unreachable", "no leader", "dead":
			return red + word + plain
		case "absent", "low", "full":
			return yellow + word + plain
		case "leader":
			return green + word + plain
		}
		return bold + word + plain
	})
}

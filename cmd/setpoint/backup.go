package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/backups"
	"github.com/setpoint-io/setpoint/server/offline"
)

func newBackup() *cobra.Command {
	return group(&cobra.Command{Use: "backup", Short: "Back up all objects of a cluster, verify and restore backups"},
		newBackupCreate(), newBackupList(), newBackupVerify(), newBackupRestore())
}

// withFile is withSources for a command whose one argument is a file.
func withFile(cmd *cobra.Command) *cobra.Command {
	withSources(cmd)
	cmd.ValidArgsFunction = nil // files
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return usageError{fmt.Errorf("%s takes one file: run '%s --help'", cmd.Name(), cmd.CommandPath())}
	}
	return cmd
}

func newBackupCreate() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "create FILE",
		Short: "Write all objects, as they are at one moment, to a file; '-' is standard output",
		Long: "Write all objects, as they are at one moment, to a file, while others write.\n" +
			"The file appears when it is whole. What is encrypted in the store, as Secrets are, is encrypted in it:\n" +
			"to read it, keep the trust folder too.",
		Example: "  setpoint backup create setpoint-$(date +%F).backup",
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "the administrator's kubeconfig (default $KUBECONFIG, then this machine's)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		configs, err := contexts(kubeconfig)
		if err != nil {
			return err
		}
		progress := newProgress(cmd.ErrOrStderr())
		report, err := createBackup(cmd, configs, args[0], progress.update)
		progress.end()
		if err != nil {
			return fmt.Errorf("no backup was made: %w", err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%d objects at revision %d, %s, state hash %x\n",
			report.Objects, report.Revision, mebibytes(report.ArchiveBytes), report.StateHash)
		return nil
	}
	return withFile(cmd)
}

// createBackup asks one server after the other until one makes a backup.
func createBackup(
	cmd *cobra.Command,
	configs map[string]*rest.Config,
	path string,
	progress admin.BackupProgress,
) (admin.BackupReport, error) {
	var failed error
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		report, err := fetchBackup(cmd.Context(), configs[name], cmd.OutOrStdout(), path, progress)
		if err == nil || cmd.Context().Err() != nil || errors.Is(err, admin.ErrNotOurs) {
			return report, err
		}
		isFile := errors.As(err, new(*fs.PathError)) || errors.As(err, new(*os.LinkError))
		if path != "-" && isFile { // no server can help
			return report, fmt.Errorf("%w: name a file in a folder that is there, can be written and has room", err)
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		if path == "-" {
			break // a part may be written
		}
	}
	return admin.BackupReport{}, failed
}

func fetchBackup(
	ctx context.Context,
	config *rest.Config,
	out io.Writer,
	path string,
	progress admin.BackupProgress,
) (admin.BackupReport, error) {
	if path == "-" {
		return admin.FetchBackup(ctx, config, out, progress)
	}
	return admin.FetchBackupFile(ctx, config, path, progress)
}

func newBackupList() *cobra.Command {
	var output string
	var source backups.Source
	cmd := &cobra.Command{
		Use: "list FOLDER", Aliases: []string{"ls"}, Short: "Show the backups of a folder or bucket, the oldest first; exit code 1 if one cannot be read",
		Long: "Show the backups of a folder, or of s3://BUCKET/PREFIX, the oldest first, by what the beginning of each says:\n" +
			"'setpoint backup verify' reads one whole.",
	}
	source.Flags(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := source.List(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := printAs(cmd.OutOrStdout(), output, list, func(w io.Writer) error { return backups.Print(escaped{w}, list) }); err != nil {
			return err
		}
		return backups.Problems(list)
	}
	return withFile(cmd)
}

func newBackupVerify() *cobra.Command {
	var output string
	var source backups.Source
	cmd := &cobra.Command{Use: "verify FILE", Short: "Check a backup, a file or s3://BUCKET/KEY, and try to load it; exit code 1 if it is damaged"}
	source.Flags(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := source.Open(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		report, err := offline.VerifyBackup(file, args[0])
		if err != nil {
			return err
		}
		view := backups.ViewOf(args[0], report)
		return printAs(cmd.OutOrStdout(), output, view, view.Print)
	}
	return withFile(cmd)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// storeFlags are the flags that name a server's data directory and its cluster.
func storeFlags(cmd *cobra.Command, options *offline.Options) {
	cmd.Flags().StringVar(&options.Name, "name", "server-1", "name of the server, one of --initial-servers")
	cmd.Flags().StringVar(&options.DataDir, "data-dir", setpoint.DefaultDataDir, "the server's data directory")
	cmd.Flags().StringVar(&options.InitialServers, "initial-servers", "", "all servers: name=host:port,...; empty: this one alone")
	cmd.Flags().StringVar(&options.AdvertiseAddress, "advertise-address", "", "without --initial-servers: host:port of this server")
	cmd.Flags().StringVar(&options.TrustDir, "trust-dir", "", "what 'setpoint cluster init' wrote (default <data-dir>)")
}

// printRestored says what the server begins with, or with whom.
func printRestored(w io.Writer, options *offline.Options, r offline.Restored) {
	if r.Life == "" {
		first, _, _ := strings.Cut(options.InitialServers, "=")
		fmt.Fprintf(w, "%s: %s begins with the %d objects that %s, the first of --initial-servers, has: restore the same file there too\n",
			options.DataDir, options.Name, r.Objects, first)
		return
	}
	fmt.Fprintf(w, "%s: %d objects, state hash %x; the backup was made at revision %d, the cluster begins at %d, in the life %s\n",
		options.DataDir, r.Objects, r.StateHash, r.Report.Revision, r.Revision, r.Life)
}

func newBackupRestore() *cobra.Command {
	var options offline.Options
	var source backups.Source
	var newCluster bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Create the data directory of a stopped server from a backup",
		Long: "Create the data directory of a stopped server from a backup, a file or s3://BUCKET/KEY.\n\n" +
			"For a cluster of three, restore the same file on each server with the same --initial-servers, then start\n" +
			"them: they begin with the data of the first of the list. Or restore on one with --initial-servers naming\n" +
			"it alone, and let the others join with empty data directories.\n\n" +
			"All servers of the former cluster must be stopped. A new life of the cluster begins: a server that still has\n" +
			"data of another life is refused, and the revision begins with the time in microseconds, so that every client\n" +
			"lists again.",
		Example: "  setpoint backup restore monday.backup --name server-1 --initial-servers server-1=a:6443,server-2=b:6443,server-3=c:6443 --trust-dir /etc/setpoint",
	}
	storeFlags(cmd, &options)
	source.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&newCluster, "new-cluster", false, "accept a backup of a cluster with another certificate authority")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if options.Logger, err = newLogger(cmd); err != nil {
			return err
		}
		if err := options.Validate(); err != nil {
			return usageError{err}
		}
		file, err := source.Open(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		restored, err := offline.RestoreBackup(cmd.Context(), file, args[0], options, newCluster)
		if err != nil {
			return err
		}
		printRestored(cmd.OutOrStdout(), &options, restored)
		if newCluster && restored.Encrypted > 0 {
			fmt.Fprintf(
				cmd.OutOrStdout(),
				"%d objects are encrypted: add the keys of the former cluster's pki/encryption.yaml to this one's, below its own key, or they cannot be read\n",
				restored.Encrypted,
			)
		}
		return nil
	}
	return withFile(cmd)
}

package install

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// readyTimeout is how long what was started may take to be ready, if nobody says otherwise.
const readyTimeout = 3 * time.Minute

// tokenBytesMax bounds what is read of a token at standard input.
const tokenBytesMax = 1 << 10

var (
	errNotRoot    = errors.New("this needs root: run it with sudo")
	errBothTokens = errors.New("--token and --token-file exclude each other")
	errTokenAlone = errors.New("--token is for --join: a machine that begins a cluster needs none")
	errNoJoin     = errors.New("an agent needs a cluster: --join HOST and --token, which 'setpoint token create' prints on a server")
)

// Shell is what all commands share.
type Shell struct {
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// Mistake is an error of the command line.
	Mistake func(error) error
	// Logger is for what is tried again.
	Logger func(cmd *cobra.Command) (*slog.Logger, error)
	// DataDir is where servers and agents keep their data by default.
	DataDir string
}

// flags of both roles.
type flags struct {
	join             []string
	token, tokenFile string
	name             string
	timeout          time.Duration
}

func (f *flags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.join, "join", nil, "servers of the cluster to join, HOST or HOST:PORT, one is enough")
	cmd.Flags().StringVar(&f.token, "token", "", "the token to join with")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "a file with the token, - for standard input, so that no list of processes and no history of a shell shows it")
	cmd.Flags().DurationVar(&f.timeout, "timeout", readyTimeout, "how long joining may take, and then the start until it is ready")
}

// readToken is the text of the token, "" if there is none.
func (f *flags) readToken(stdin io.Reader) (string, error) {
	if f.tokenFile == "" {
		return f.token, nil
	}
	if f.tokenFile == "-" {
		line, err := bufio.NewReader(io.LimitReader(stdin, tokenBytesMax)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return strings.TrimSpace(line), err
	}
	text, err := os.ReadFile(f.tokenFile)
	return strings.TrimSpace(string(text)), err
}

func (f *flags) validate() error {
	hasToken := f.token != "" || f.tokenFile != ""
	switch {
	case f.token != "" && f.tokenFile != "":
		return errBothTokens
	case hasToken && len(f.join) == 0:
		return errTokenAlone
	}
	return nil
}

// Install are `setpoint install server` and `setpoint install agent`.
func (s *Shell) Install() []*cobra.Command { return []*cobra.Command{s.server(), s.agent()} }

func (s *Shell) server() *cobra.Command {
	var o serverOptions
	cmd := &cobra.Command{
		Use: "server", Short: "Make this machine a server: of a new cluster, or with --join of one that there is",
		Long: "Make this machine a server of a new cluster, or, with --join and a token of 'setpoint token create --for server', of one that\n" +
			"there is. This binary becomes /usr/local/bin/setpoint, keys are in /etc/setpoint, data in /var/lib/setpoint, and a unit of systemd\n" +
			"runs it. It waits until the server is ready, and prints what to type on the other machines. Without systemd it prints what to run.\n\n" +
			"Run again it replaces binary and unit, and keeps settings, keys and data. Flags of 'setpoint server' that are not here stand in\n" +
			"/etc/setpoint/server.env (SETPOINT_POD_CIDR=...), before or after.",
		Example: "  setpoint install server\n  setpoint install server --join 10.0.0.1 --token server.…",
	}
	o.flags.add(cmd)
	cmd.Flags().StringVar(&o.name, "name", "", "name of this server (default: server- and the machine's name)")
	cmd.Flags().StringVar(&o.address, "advertise-address", "", "HOST or HOST:PORT where others reach it (default: this machine's address, port 6443)")
	return s.finish(cmd, &o.flags, func(cmd *cobra.Command, i *installer) error { return i.server(cmd.Context(), o) })
}

func (s *Shell) agent() *cobra.Command {
	var o agentOptions
	cmd := &cobra.Command{
		Use: "agent", Short: "Make this machine a node, which runs pods",
		Long: "Make this machine a node of a cluster, with a token of 'setpoint token create'. It may be a server too. A unit of systemd runs the\n" +
			"agent, and the command waits until the node is Ready. Without systemd it prints what to run.\n\n" +
			"Run again it replaces binary and unit, and needs no token. Flags of 'setpoint agent' that are not here stand in\n" +
			"/etc/setpoint/agent.env (SETPOINT_POD_NETWORK=...), before or after.",
		Example: "  setpoint install agent --join 10.0.0.1 --token node.…",
	}
	o.flags.add(cmd)
	cmd.Flags().StringVar(&o.name, "name", "", "name of the node (default: the machine's)")
	cmd.Flags().StringVar(&o.nodeIP, "node-ip", "", "address of this node (default: the one that reaches the server)")
	return s.finish(cmd, &o.flags, func(cmd *cobra.Command, i *installer) error { return i.agent(cmd.Context(), o) })
}

func (s *Shell) finish(cmd *cobra.Command, f *flags, run func(*cobra.Command, *installer) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.validate(); err != nil {
			return s.Mistake(err)
		}
		i, err := s.installer(cmd)
		if err != nil {
			return err
		}
		if f.tokenFile == "-" {
			fmt.Fprintln(cmd.ErrOrStderr(), "the token, at standard input:")
		}
		return run(cmd, i)
	}
	return s.Finish(cmd)
}

// Uninstall is `setpoint uninstall`.
func (s *Shell) Uninstall() *cobra.Command {
	var purge, yes bool
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Undo 'setpoint install' on this machine; data and keys go with --purge alone",
		Long: "Stop and remove the units of 'setpoint install' and its binary. Data in /var/lib/setpoint, pods, and keys and settings in\n" +
			"/etc/setpoint stay, or where the settings say; installing again goes on with them. With --purge they go too, after it was said\n" +
			"what goes. A server of several: run 'setpoint cluster remove' before; a node: 'setpoint kubectl drain' and 'delete node'.",
		Example: "  setpoint uninstall\n  setpoint uninstall --purge",
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "end the pods, and remove data, keys and settings too")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask, for scripts")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		i, err := s.installer(cmd)
		if err != nil {
			return err
		}
		return i.uninstall(cmd.Context(), purge, func(what string) error { return confirmed(cmd, yes, what) })
	}
	return s.Finish(cmd)
}

func (s *Shell) installer(cmd *cobra.Command) (*installer, error) {
	if os.Geteuid() != 0 {
		return nil, errNotRoot
	}
	logger, err := s.Logger(cmd)
	if err != nil {
		return nil, err
	}
	const root folder = "/"
	return &installer{
		files: root, manager: newManager(root), reset: resetMachine, dataDir: s.DataDir,
		in: cmd.InOrStdin(), out: cmd.OutOrStdout(), logger: logger,
	}, nil
}

// installer changes one machine.
type installer struct {
	files   folder
	manager *manager // nil: systemd does not run here
	reset   func(dataDir string) error
	dataDir string // by default
	in      io.Reader
	out     io.Writer
	logger  *slog.Logger
}

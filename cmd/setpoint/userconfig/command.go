package userconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/setpoint-io/setpoint/cmd/setpoint/clusterstatus"
	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/admin"
)

const (
	// clusterName is what a cluster is called in a file that it shares with others.
	clusterName = "setpoint"
	// signLimit bounds how long one server may take until a certificate is signed.
	signLimit = 20 * time.Second
)

var (
	errMergeOrRemove = errors.New("--merge and --remove exclude each other")
	errNameAlone     = errors.New("--name is for --merge and --remove")
	errUserAlone     = errors.New("--group and --expires are for the kubeconfig of a USER")
	errRemoveUser    = errors.New("--remove takes no USER: give the context's name with --name")
	errOneUser       = errors.New("want one USER at most")
	errNoServer      = errors.New("no server answers")
	errNoContext     = errors.New("the kubeconfig has no current context")
)

// Shell is what the command needs of others.
type Shell struct {
	// Own is the path of the kubeconfig of this machine's cluster, or the reason why there is none.
	Own func() (string, error)
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// Mistake is an error of the command line.
	Mistake func(error) error
}

// options are the flags.
type options struct {
	*Shell
	from, name    string
	merge, remove bool
	user          User
}

// Command is `setpoint kubeconfig`.
func (s *Shell) Command() *cobra.Command {
	o := &options{Shell: s}
	cmd := &cobra.Command{
		Use: "kubeconfig [USER]", Short: "Print the kubeconfig of this machine's cluster or one for a user, or merge it into yours",
		Long: long, Example: examples,
	}
	cmd.Flags().StringVar(&o.from, "kubeconfig", "", "another cluster's kubeconfig (default: this machine's)")
	cmd.Flags().BoolVar(&o.merge, "merge", false, "add it to your kubeconfig")
	cmd.Flags().BoolVar(&o.remove, "remove", false, "take it out of your kubeconfig")
	cmd.Flags().StringVar(&o.name, "name", clusterName, "name of its context there, for a USER setpoint-USER; with several servers it is followed by theirs")
	cmd.Flags().StringArrayVar(&o.user.Groups, "group", nil, "a group that USER is in; may be given more than once")
	cmd.Flags().DurationVar(&o.user.Life, "expires", lifeDefault, fmt.Sprintf("how long USER's certificate is valid, %s to %s", lifeMin, lifeMax))
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) }
	cmd = s.Finish(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error { return o.check(cmd, args) }
	return cmd
}

// check refuses what makes no sense, before anybody is asked.
func (o *options) check(cmd *cobra.Command, args []string) error {
	var err error
	switch named, ofUser := cmd.Flags().Changed("name"), cmd.Flags().Changed("group") || cmd.Flags().Changed("expires"); {
	case len(args) > 1:
		err = errOneUser
	case o.merge && o.remove:
		err = errMergeOrRemove
	case named && !o.merge && !o.remove:
		err = errNameAlone
	case len(args) == 0 && ofUser:
		err = errUserAlone
	case len(args) == 1 && o.remove:
		err = errRemoveUser
	case len(args) == 1:
		if o.user.Name = args[0]; !named {
			o.name = clusterName + "-" + o.user.Name
		}
		err = o.user.Validate()
	}
	if err != nil {
		return o.Mistake(err)
	}
	return nil
}

func (o *options) run(cmd *cobra.Command, _ []string) (err error) {
	path := o.from
	if path == "" {
		if path, err = o.Own(); err != nil {
			return err
		}
	}
	config, err := kubeconfig.Read(path)
	if err != nil {
		return err
	}
	if o.remove { // that is possible without a server
		return say(cmd, "the context %s is no longer in %s\n", kubeconfig.Remove, config, o.name)
	}
	config = o.following(cmd, config)
	if o.user.Name != "" {
		if config, err = o.ofUser(cmd, config, path); err != nil {
			return err
		}
	}
	if o.merge {
		return say(cmd, "kubectl uses the context %s of %s now\n", kubeconfig.Merge, config, o.name)
	}
	text, err := clientcmd.Write(*config)
	if err == nil {
		_, err = cmd.OutOrStdout().Write(text)
	}
	return err
}

// say changes the user's file, and says what was done.
func say(
	cmd *cobra.Command, done string, change func(*api.Config, string) (context, file string, err error), config *api.Config, name string,
) error {
	context, file, err := change(config, name)
	if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), done, context, file)
	}
	return err
}

// following is the kubeconfig with the members of today, or as it is if no server tells them to who asks.
func (o *options) following(cmd *cobra.Command, config *api.Config) *api.Config {
	members, err := membersBy(cmd.Context(), config)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "the servers are those of the file: %v\n", err)
	}
	return Follow(config, members)
}

// membersBy asks the server that knows best.
func membersBy(ctx context.Context, config *api.Config) (members []admin.Member, err error) {
	configs, err := clients(config)
	if err != nil {
		return nil, err
	}
	best := clusterstatus.Best(ctx, configs)
	if best == nil {
		return nil, errNoServer
	}
	ctx, cancel := context.WithTimeout(ctx, clusterstatus.Timeout)
	defer cancel()
	members, err = admin.FetchMembers(ctx, best)
	return slices.DeleteFunc(members, func(m admin.Member) bool { return m.Role == admin.RoleLearner }), err
}

// clients are how to reach the servers of the current context's cluster, by their contexts.
func clients(config *api.Config) (map[string]*rest.Config, error) {
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil, errNoContext
	}
	configs := map[string]*rest.Config{}
	for _, name := range alike(config, current) {
		client, err := clientcmd.NewNonInteractiveClientConfig(*config, name, nil, nil).ClientConfig()
		if err != nil {
			return nil, err
		}
		kubeconfig.SayIfExpired(client)
		kubeconfig.SayIfRemoved(client, nil)
		configs[name] = client
	}
	return configs, nil
}

// ofUser is a kubeconfig that leads to the same servers, as the user.
func (o *options) ofUser(cmd *cobra.Command, config *api.Config, path string) (*api.Config, error) {
	r, err := newRequest(&o.user)
	if err != nil {
		return nil, err
	}
	var certPEM []byte
	if o.user.isMaster() {
		certPEM, err = o.signedByKey(r, path)
	} else {
		certPEM, err = o.signedByAPI(cmd.Context(), r, config)
	}
	if err != nil {
		return nil, err
	}
	certificate, err := trust.ParseCertificate(certPEM)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "it is %s's until %s; 'setpoint revoke user/%s' ends it before\n",
		o.user.Name, certificate.NotAfter.UTC().Format(time.RFC3339), o.user.Name)
	return as(config, o.user.Name, &api.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: r.keyPEM}), nil
}

// as is a kubeconfig of one user alone, with the contexts that lead to the current one's cluster.
func as(config *api.Config, name string, user *api.AuthInfo) *api.Config {
	ofUser := api.NewConfig()
	ofUser.CurrentContext, ofUser.AuthInfos[name] = config.CurrentContext, user
	for _, context := range alike(config, config.Contexts[config.CurrentContext]) {
		c := config.Contexts[context].DeepCopy()
		c.AuthInfo, c.Namespace = name, ""
		ofUser.Contexts[context], ofUser.Clusters[c.Cluster] = c, config.Clusters[c.Cluster]
	}
	return ofUser
}

// signedByAPI asks one server after the other until one answers.
func (o *options) signedByAPI(ctx context.Context, r *request, config *api.Config) (certPEM []byte, err error) {
	configs, err := clients(config)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		client, clientErr := kubernetes.NewForConfig(configs[name])
		if clientErr != nil {
			return nil, clientErr
		}
		limited, cancel := context.WithTimeout(ctx, signLimit)
		certPEM, err = r.byAPI(limited, client, &o.user)
		cancel()
		if !errors.As(err, new(interface{ Timeout() bool })) { // it has answered
			return certPEM, err
		}
	}
	return nil, fmt.Errorf("%w: %w", errNoServer, err)
}

// signedByKey signs with the CA's key, which lies beside the kubeconfig of a trust folder.
func (o *options) signedByKey(r *request, path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	cluster, err := trust.LoadCluster(filepath.Dir(real))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, errMaster
	}
	if err != nil {
		return nil, err
	}
	return r.byAuthority(cluster.CA, &o.user)
}

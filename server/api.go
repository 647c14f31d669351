package server

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/admission/dynamic"
	"github.com/setpoint-io/setpoint/apiserver/admission/quota"
	"github.com/setpoint-io/setpoint/apiserver/admission/timing"
	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/apiserver/flowcontrol"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/requestmetrics"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest"
	"github.com/setpoint-io/setpoint/apiserver/rest/proxy"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/apiserver/usage"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/profiles"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/sampled"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/zpages"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/access"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/backups"
	"github.com/setpoint-io/setpoint/server/caches"
	"github.com/setpoint-io/setpoint/server/drain"
	"github.com/setpoint-io/setpoint/server/inprocess"
	"github.com/setpoint-io/setpoint/server/liveness"
	"github.com/setpoint-io/setpoint/server/named"
	"github.com/setpoint-io/setpoint/server/parts"
	"github.com/setpoint-io/setpoint/server/past"
	"github.com/setpoint-io/setpoint/server/peers"
	"github.com/setpoint-io/setpoint/server/podresources"
	"github.com/setpoint-io/setpoint/server/rotations"
	"github.com/setpoint-io/setpoint/server/why"
)

// apiConfig is what the API needs of the server that it belongs to.
type apiConfig struct {
	Config
	identity *identity
	log      *raftstore.Store
	liveness *liveness.Liveness
	drain    *drain.Drain
	// servers are all replicas now and where they are.
	servers func() []trust.Server
	// revoked is who is shut out.
	revoked *revocation.Judge
	// parts show what those of this server do.
	parts *parts.Parts
	// maker makes backups, nil if there is no schedule.
	maker *backups.Maker
	// history is nil if none is kept.
	history *history.History
}

// api is the API of a replica, with the parts of it that the loops share.
type api struct {
	config apiConfig
	server *apiserver.Server
	// door leads to server for the parts of this replica.
	door       *inprocess.Door
	storage    *storage.Store
	atRest     *encryption.Keeper
	sealing    *rotations.Sealing
	access     *access.Access
	rotations  *rotations.Rotations
	caches     *caches.Caches
	custom     *crd.Catalog
	frontProxy *aggregation.FrontProxy
	// proxyAuthorities are those of frontProxy; followed says when this server knows which one counts, and with which key to encrypt.
	proxyAuthorities *trust.Ring[trust.ProxyAuthority]
	followed         firsts
	aggregation      *aggregation.Aggregator
	quota            *quota.Quota
	// reserved knows which ports of machines are the cluster's.
	reserved *reserved.Book
	// machinesKnown tell whether it has taken all that was stored.
	machinesKnown []cache.InformerSynced
	kubelets      *peers.Kubelets
	// dialPods reaches pods by the agents of their nodes.
	dialPods utilnet.DialFunc
	usage    *usage.Meter
	admin    *admin.Admin
	// numbers count what the loops of this server do.
	numbers *numbers.Ledger
	// remote reaches the parts of all servers.
	remote parts.Remote
	// requests counts what this server answers.
	requests *requestmetrics.Requests
	// admissionMetrics are told how long admission takes.
	admissionMetrics *timing.Metrics
	// shares divide its watches and streams.
	shares *apiserver.Shares
	// pastTurns divide its reads of history.
	pastTurns *past.Turns
	// refusals chooses which refused writes of clients without a name are noted.
	refusals sampled.Sampler
	// offered are the built-in kinds, reviews included.
	offered []*resource.Any
	// typeChecker tells whether policies fit what they are about.
	typeChecker *dynamic.TypeChecker
}

// newAPI makes the API over the opened log.
func newAPI(ctx context.Context, config apiConfig) (*api, error) {
	scheme, all := kinds.NewScheme(), kinds.All()
	a := &api{
		config: config, door: inprocess.NewDoor(config.Intercept), numbers: &numbers.Ledger{}, requests: requestmetrics.New(),
		admissionMetrics: timing.New(),
		shares:           apiserver.NewShares(),
		pastTurns:        past.NewTurns(),
		followed:         newFirsts(rotation.EncryptionKey, rotation.FrontProxy),
		storage:          storage.NewWithClock(config.log, scheme, all, config.Clock),
	}
	if config.history != nil {
		a.storage.KeepHistory(past.Share(config.history, a.pastTurns))
	}
	clients, err := newClients(a.door)
	if err != nil {
		return nil, err
	}
	if err := a.addParts(ctx, all, apiserver.NewCodecs(scheme), clients); err != nil {
		return nil, err
	}
	fair := flowcontrol.New(a.sizes)
	if err := fair.Follow(a.caches); err != nil {
		return nil, err
	}
	a.reserved = reserved.New()
	a.machinesKnown = a.reserved.Follow(a.caches.Core().V1().Nodes().Informer(), a.caches.Discovery().V1().EndpointSlices().Informer())
	admit, err := newAdmission(ctx, a, clients)
	if err != nil {
		return nil, err
	}
	documents, err := a.newDiscovery(fair)
	if err != nil {
		return nil, err
	}
	a.server, err = apiserver.New(apiserver.Config{
		Kinds: all, Scheme: scheme, Storage: a.storage,
		Kubelets:      a.kubelets,
		Servers:       a.remote,
		Pods:          proxy.NewTransport(a.dialPods),
		Admission:     admit,
		Quota:         a.quota,
		Reserved:      a.reserved,
		Authenticator: a.access.Authenticator,
		Authorizer:    a.access.Authorizer,
		Revoked:       a.config.revoked,
		NodeKeys:      a.access.NodeKeys,
		Tokens:        a.access.Issuer,
		Reviews:       a.access.Reviews,
		Computed:      a.usage.Kinds(),
		Health:        a.checkLog,
		TypeConverter: &lazyTypeConverter{},
		Custom:        a.custom,
		Elsewhere:     a.aggregation,
		Discovery:     documents,
		Services:      a.services(clients.typed),
		Fairness:      fair,
		Requests:      a.requests,
		Shares:        a.shares,
		Processor:     a.config.Processor,
		Streams:       config.drain.Streams(),
		Audit:         a.audit(),
		Written:       a.noteWrite,
		Logger:        config.Logger,
	})
	if err != nil {
		return nil, err
	}
	a.door.Open(a.server)
	return a, nil
}

// addParts makes what the requests and the loops share. Each part uses those above it.
func (a *api) addParts(ctx context.Context, all []*resource.Any, codecs serializer.CodecFactory, c clients) (err error) {
	if a.atRest, a.sealing, err = encryptAtRest(ctx, a.config.Config, a.storage, a.followed[rotation.EncryptionKey].closed); err != nil {
		return err
	}
	a.access, err = access.New(ctx, access.Config{
		Storage: a.storage, Authority: a.config.Trust.CA, Revoked: a.config.revoked,
		AccountKeys: a.config.Trust.AccountKeys, Authentication: a.config.Authentication,
		AuthorizationFile: a.config.AuthorizationFile, Server: a.config.Name, Logger: a.config.Logger,
	})
	if err != nil {
		return err
	}
	a.kubelets = peers.NewKubelets(a.config.identity.live, a.config.identity.nodeServing, a.config.revoked)
	if a.dialPods = a.config.DialOutside; a.dialPods == nil {
		a.dialPods = peers.Pods{Agents: a.kubelets, Nodes: a.nodes}.DialContext
	}
	if err := a.addOtherKinds(codecs); err != nil {
		return err
	}
	a.offered = append(all[:len(all):len(all)], rest.Bindings(), rest.ComponentStatuses())
	a.offered = append(a.offered, reviews.Kinds(a.access.Reviews)...)
	a.usage = usage.New(usage.Config{Store: a.storage, Source: peers.Summaries{Kubelets: a.kubelets}, Logger: a.config.Logger})
	for _, computed := range a.usage.Kinds() {
		a.offered = append(a.offered, computed.Kind)
	}
	if a.caches, err = caches.New(c.typed, a.storage, caches.Reads(a.storage.Serves), a.config.Logger); err != nil {
		return err
	}
	a.typeChecker = dynamic.NewTypeChecker(a.storage, c.typed.Discovery(), c.mapper)
	limited, err := quota.ParseLimited(a.config.AdmissionConfiguration.For("ResourceQuota"))
	if err != nil {
		return err
	}
	a.quota = quota.New(a.storage, limited)
	peer, err := peers.Clients(a.config.identity.live, a.config.Dial, a.config.revoked)
	if err != nil {
		return err
	}
	a.rotations = a.newRotations(c.typed, peer)
	a.remote = parts.Remote{Members: a.config.servers, Peer: peer}
	a.config.parts.Check(a.partChecks())
	a.admin = admin.New(admin.Config{
		Log: a.config.log, Storage: a.storage, Gossip: a.config.liveness.GossipMembers, Certificates: a.certificates,
		Encryption: a.atRest.Status, Backups: a.config.maker, Numbers: a.numbers, Pace: a.config.Pace, Peer: peer, Why: a.newWhy().Answer,
		Lessons: a.config.Lessons,
		History: a.config.history, Past: a.newPast(),
		ServerToken: a.serverToken(c.typed), Rotations: a.rotations, Logger: a.config.Logger,
	})
	return nil
}

// newWhy makes what explains objects.
func (a *api) newWhy() *why.Why {
	return why.New(why.Config{
		Storage: a.storage, Caches: a.caches, Scheduling: a.config.Scheduling, CustomKinds: a.custom.Kinds, Custom: a.custom.Instances,
		Loops:      func(ctx context.Context) ([]numbers.Report, error) { return a.admin.Reports(ctx) },
		Authorizer: a.access.Authorizer, Clock: a.config.Clock,
	})
}

// newPast makes what answers about former states of objects.
func (a *api) newPast() *past.Past {
	kinds := named.Kinds{Storage: a.storage, CustomKinds: a.custom.Kinds, Custom: a.custom.Instances}
	return past.New(past.Source{Kinds: kinds, Authorizer: a.access.Authorizer, Turns: a.pastTurns})
}

// addOtherKinds makes what serves kinds that are not built in.
func (a *api) addOtherKinds(codecs serializer.CodecFactory) (err error) {
	if a.proxyAuthorities, err = trust.NewFrontProxyRing(a.config.Trust.CA); err != nil {
		return err
	}
	a.frontProxy = aggregation.NewFrontProxy(a.proxyAuthorities, a.followed[rotation.FrontProxy].closed, a.config.Clock.Now)
	resolver := dynamic.NewServiceResolver(a.storage)
	a.aggregation = aggregation.New(aggregation.Config{
		Store: a.storage, Services: resolver, Dial: a.dialPods, Certificate: a.frontProxy.Certificate,
		Authority: a.frontProxy.Authority, Codecs: codecs, Logger: a.config.Logger,
	})
	a.custom, err = crd.New(crd.Config{
		Codecs: codecs, Storage: a.storage, Models: discovery.MetadataModels, Services: resolver, Dialled: a.dialled(),
	})
	a.access.OfGateways(a.namedByGateways)
	return err
}

// dialled makes clients of webhooks for conversion connect.
func (a *api) dialled() webhook.AuthenticationInfoResolverWrapper {
	if a.config.DialOutside != nil {
		return dynamic.DialAll(a.dialPods)
	}
	return dynamic.DialServices(a.dialPods)
}

// newDiscovery says what is offered: the built-in kinds, reviews included, and all others.
func (a *api) newDiscovery(fair *flowcontrol.Fairness) (*discovery.Handler, error) {
	documents := maps.Clone(a.access.Documents)
	maps.Copy(documents, fair.Documents())
	maps.Copy(documents, profiles.Handlers())
	zpages.Of("apiserver", a.config.Flags)(zpages.Handlers(documents), rootPaths)
	documents[podresources.Path] = podresources.Handler(a.pods)
	return discovery.New(discovery.Config{
		Kinds: a.offered, Custom: a.custom.Kinds, Remotes: a.aggregation.Remotes, Priority: kinds.Priorities,
		Address: a.config.identity.self.Endpoint, Version: process.Version, Logger: a.config.Logger,
		Documents: documents, Metrics: a.metrics(fair), Checks: a.checks(),
	})
}

// rootPaths are what there is to look at beside the API.
var rootPaths = []string{"/debug", "/healthz", "/livez", "/metrics", "/readyz", "/version"}

// sizes tells how much a list reads, as this replica has it.
func (a *api) sizes(info *request.RequestInfo, objectsLimit, bytesLimit int) (objects, bytes int) {
	return a.storage.Sizes(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Namespace, objectsLimit, bytesLimit)
}

// audit is nil, not an interface of nothing, without a log.
func (a *api) audit() apiserver.Audit {
	if a.config.AuditLog == nil {
		return nil
	}
	return a.config.AuditLog
}

// services are what the parts say to each other on the API's port.
func (a *api) services(client kubernetes.Interface) []apiserver.Service {
	pattern, handler := a.config.log.Handler()
	services := []apiserver.Service{
		{Prefix: pattern, Handler: handler, Allow: auth.IsServer, Traffic: apiserver.Parts}, a.joinService(client), a.joinServerService(client),
	}
	services = append(services, a.admin.Services()...)
	services = append(services, a.config.parts.Services()...)
	return append(services, a.config.liveness.Services()...)
}

// nodes are those that this replica knows, pods likewise.
func (a *api) nodes() ([]*corev1.Node, error) { return stored[*corev1.Node](a, "nodes") }
func (a *api) pods() ([]*corev1.Pod, error)   { return stored[*corev1.Pod](a, "pods") }

// stored are the objects of a core resource that this replica knows.
func stored[T any](a *api, resource string) ([]T, error) {
	snapshot, err := a.storage.Table(corev1.SchemeGroupVersion.WithResource(resource)).Snapshot(context.Background(), "0")
	if err != nil {
		return nil, err
	}
	var all []T
	for object, err := range snapshot.All("") {
		if err != nil {
			return nil, err
		}
		all = append(all, object.(T))
	}
	return all, nil
}

package house

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rooms are the packages of the module: what each owns, and which others its code may
// import. docs/internals/packages.md prints this table: `go test ./internal/house -update`.
//
// A package belongs to the room whose pattern says most about it. It may import what
// the room lists, and nothing else, what stands below its own folder neither; "*" is any one folder, "..." all
// below. Tests follow TestHouseTestImports.
var rooms = []room{
	{[]string{"cmd/setpoint"}, "flags, signals, exit codes",
		[]string{".", "cmd/setpoint/*", "agent", "agent/runtime/cri/embedded", "agent/runtime/cri/embedded/demo", "agent/host", "agent/base/machine", "agent/net/network", "agent/net/network/wireguard", "agent/reset", "server", "server/auditlog", "apiserver/auth/authconfig", "apiserver/encryption", "internal/process", "internal/process/startup", "internal/trust/...", "server/{admin,backups,offline,why}", "apiserver/explain", "internal/{clip,durable,zpages}"},
		"commands are tested by starting the binary, which is slow, so what can be judged without it stands in packages of its own"},
	{[]string{"cmd/setpoint/clusterstatus"}, "how the members of the control plane are, and whether somebody is needed", []string{"cmd/setpoint/kubeconfig", "internal/{rotation,trust}", "server/admin"}, "the members of the log count, not the contexts of a kubeconfig"},
	{[]string{"cmd/setpoint/kubeconfig"}, "a cluster in the kubeconfig that a user has, and what an expired one says, or one of a server that was removed", []string{"server/removed"}, ""},
	{[]string{"cmd/setpoint/userconfig"}, "what `setpoint kubeconfig` makes: for whom, and for which servers", []string{"cmd/setpoint/{clusterstatus,kubeconfig}", "internal/{revocation,trust}", "server/admin"}, "the members of the log count, and a private key never leaves the command"},
	{[]string{"cmd/setpoint/revoke"}, "what `setpoint revoke` reads and writes", []string{"internal/{revocation,trust}", "internal/trust/tokens", "server/admin"}, ""},
	{[]string{"cmd/setpoint/ui"}, "`setpoint ui`: who may come in, what may be asked of the servers, and how they are reached", []string{"cmd/setpoint/{clusterstatus,kubeconfig}", "server/admin", "web"}, "the page opens no new door on a server: it has the caller's rights, and of those it only reads, but for orders that servers refuse unless their cluster is one to learn on"},
	{[]string{"web"}, "the page of a cluster: HTML, CSS and modules, as a browser reads them", nil, "no build step, nothing fetched from elsewhere, and nothing from a cluster is read as HTML"},
	{[]string{"cmd/setpoint/past"}, "what `setpoint history` asks and prints", []string{"apiserver/explain", "server/{admin,named,past}"}, "it only reads, but for what it is told to purge"},
	{[]string{"cmd/setpoint/undelete"}, "what `setpoint undelete` gives back, in which order, and what it leaves out", []string{"apiserver/explain", "cmd/setpoint/past", "server/{admin,named,past}"}, "it goes through the API with the caller's rights: no other door to the store"},
	{[]string{"cmd/setpoint/loops"}, "what `setpoint loops` shows of control loops and orders of them", []string{"controllers/reconcile/numbers", "server/admin"}, "it only reads, but for orders that servers refuse unless their cluster is one to learn on"},
	{[]string{"cmd/setpoint/lessons"}, "`setpoint dev kill`, `heal` and `advance`: what is ordered of a cluster to learn on", []string{"server/admin"}, "the process that runs the cluster decides what it does"},
	{[]string{"cmd/setpoint/rotate"}, "what `setpoint rotate` orders and prints", []string{"internal/rotation", "server/{admin,rotations}"}, "keys never leave the servers"},
	{[]string{"cmd/setpoint/install"}, "`setpoint install` and `uninstall`: what is put where on a machine", []string{"agent/{host,reset}", "deploy/systemd", "internal/{durable,process,trust}", "internal/trust/{join,jointoken,tokens}", "server", "server/admin"}, "a machine joins before anything is written, so that a refusal changes nothing"},
	{[]string{"cmd/setpoint/man"}, "`setpoint man`: a manual page for each command", nil, "the pages say what --help says"},
	{[]string{"cmd/setpoint/upgrade"}, "how a cluster comes to the release of the asking program", []string{"cmd/setpoint/clusterstatus"}, "it changes nothing"},
	{[]string{"cmd/setpoint/spelling"}, "the names that somebody may have meant", nil, ""},
	{[]string{"cmd/setpoint/testserver"}, "clusters in memory for tests in any language: requests, sessions, and when the process ends", []string{".", "internal/process"}, ""},
	{[]string{"cmd/setpoint/token"}, "what `setpoint token` asks for and prints", []string{"internal/trust/{jointoken,tokens}", "server/admin"}, ""},
	{[]string{"cmd/setpoint/upstreamflags"}, "what there is instead of flags of upstream's API server", nil, "who brings a flag along learns why it is not there"},
	{[]string{"cmd/setpoint/standin"}, "the etcd and kube-apiserver that envtest starts: their flags, and a cluster in memory", []string{".", "apiserver/admission/choice", "apiserver/runtimeconfig", "internal/gates"}, "suites that use envtest run unchanged"},
	{[]string{"cmd/setpoint/whatif"}, "`setpoint what-if`: a fork of a cluster, what is done to it, and what comes of it", []string{".", "agent/simulated", "controllers/reconcile", "internal/{kubectlrun,localvolume,parts,simulatednode,trust}", "raftstore/command", "server/{admin,inprocess}"}, "a fork runs where it is asked for: no server pays for it, and an error in it reaches no workload"},
	{[]string{"cmd/setpoint/translations"}, "kubectl's texts in other languages, loaded for those alone who read them with `setpoint kubectl`", nil, "every other start is some 20 ms sooner"},
	{[]string{"cmd/setpoint/nodestatus"}, "the screen of `setpoint node status`", []string{"agent/net/network/plan", "internal/simulatednode"}, "a client of the API like any other: it works with every cluster"},
	{[]string{"cmd/setpoint/nettrace"}, "what `setpoint net trace` says: how a packet goes, and what stops it", []string{"agent/net/dns/records", "agent/net/hostfirewall", "agent/net/network", "agent/net/network/plan", "agent/net/{policy,resolvconf,services}", "agent/net/policy/plan", "internal/{nodefirewall,reserved,servicerange}", "apiserver/explain", "internal/clusterdns"}, "each step asks the function by which nodes act, so that it cannot say another thing than they do"},
	{[]string{"setpointtest"}, "a cluster inside one test: waiting, forks, time, faults, and what to say when it fails", []string{".", "internal/testclient"}, "the door of those who test operators; its mistakes are told at the caller's line"},
	{[]string{"setpointtest/beside"}, "a cluster for one test in a process beside it, by the same names as in setpointtest", []string{"internal/{testclient,testlink}"}, "the test binary of an operator links no control plane, so each edit of a test costs a small link"},
	{[]string{"setpointtest/kubectl"}, "kubectl in the test's process", []string{"internal/kubectlrun", "setpointtest"}, "kubectl is large: tests that do not call it do not link it"},
	{[]string{"."}, "a cluster in the process that imports it", []string{"agent/simulated", "apiserver/auth/authconfig", "apiserver/{encryption,explain,podlistener,storage}", "server/auditlog", "controllers/{nodelifecycle,podnetwork}", "controllers/reconcile/pace", "internal/{clusterclock,cpushare,process,trust}", "internal/trust/tokens", "server", "server/{access,offline,settings}"}, "the library's front door: it links no container runtime"},
	{[]string{"server"}, "one replica: the order in which its parts are built, opened and stopped", []string{"server/*", "agent/node/gossip", "apiserver/...", "controllers/reconcile/{actions,numbers,pace}", "controllers/{nodelifecycle,podnetwork,rootca}", "internal/trust/{join,jointoken,kubeconfigs,storagekeys,tokens}", "internal/{clip,clusterlife,cpushare,gatewayapi,gates,parts,process,profiles,reserved,rotation,sampled,sdnotify,shares,strangers,trust,zpages}", "raftstore", "raftstore/{founded,history}", "internal/revocation"}, "the only place where the store, the API and the loops meet"},
	{[]string{"server/inprocess"}, "clients of a server's own API without a socket, for its parts", []string{"apiserver", "apiserver/storage", "controllers/reconcile", "internal/{histograms,process,trust}"}, "parts of the API are its clients too, so a client can be made before the API is built"},
	{[]string{"server/caches"}, "the informers that control loops and admission of one server read", []string{"apiserver/admission/dynamic", "apiserver/flowcontrol", "apiserver/storage", "controllers", "server/kubernetesservice", "controllers/{reconcile,scheduler}"}, "the store's own objects: no request, no codec, no second copy"},
	{[]string{"server/monitors"}, "the index of owner references, for one term of leadership", []string{"apiserver/aggregation", "apiserver/crd", "apiserver/storage", "server/caches"}, "only the leader pays for the garbage collector"},
	{[]string{"server/liveness"}, "what a server knows about which nodes are alive", []string{"agent/node/{gossip,session}", "apiserver", "apiserver/auth", "controllers/nodelifecycle", "internal/{aligned,revocation,rotation,trust}", "server/peers"}, "the voters of the log are the servers whose word counts"},
	{[]string{"server/term"}, "what only the leader runs, during one term", []string{"apiserver", "apiserver/{aggregation,crd,kinds,resource,storage}", "internal/servicerange", "apiserver/auth/rbac/policy", "apiserver/auth/tokens", "apiserver/kinds/scheduling", "controllers", "controllers/*", "internal/{process,trust}", "internal/gatewayapi/definitions", "internal/trust/{join,jointoken,kubeconfigs}", "controllers/reconcile/{actions,numbers,pace}", "server/{caches,inprocess,kubernetesservice,leader,loops,monitors,serverpods,settings}"}, "every write of a loop carries the fence of the leader's term"},
	{[]string{"server/settings"}, "what the administrator decides about a whole cluster: as it is written, and as it is meant", []string{"apiserver/admission", "controllers", "controllers/{dnsservice,loadbalancer,podnetwork}", "controllers/scheduler/profile"}, "parsed once, and passed on as one struct"},
	{[]string{"server/admin"}, "the calls of `setpoint cluster` and `backup` to a running server: handler and client", []string{"apiserver", "apiserver/{auth,discovery,encryption,explain,storage}", "server/leader", "controllers/reconcile/{numbers,pace}", "internal/{durable,process,rotation,trust}", "internal/trust/jointoken", "raftstore", "raftstore/{backup,history}", "server/{backups,liveness,named,past,rotations,why}"}, "only administrators may call it, and calls are in the audit log"},
	{[]string{"server/named"}, "which object a question in kubectl's words means, and who may get it", []string{"apiserver/{explain,resource,storage}"}, "what may be asked of an object has one door"},
	{[]string{"server/past"}, "what `setpoint history` reads of one server, and the flags of what it keeps", []string{"apiserver/{auth,explain,resource,storage}", "internal/shares", "raftstore", "raftstore/history", "raftstore/state", "server/named"}, "the store keeps records; here they are objects, differences and causes that a caller may see"},
	{[]string{"server/why"}, "what `setpoint why` reads of one server, and who may ask", []string{"apiserver/{explain,resource,storage}", "controllers/reconcile/numbers", "controllers/scheduler", "controllers/scheduler/profile", "server/{caches,named}", "agent/simulated"}, "explanations are pure; here the objects, the scheduler's verdicts and the loops' errors meet"},
	{[]string{"server/loops"}, "the metrics of the control loops, and the account of what they write", []string{"controllers/reconcile", "controllers/reconcile/{actions,numbers}"}, "the loops themselves know neither metrics nor HTTP"},
	{[]string{"server/podresources"}, "what the pods of the cluster request, in /metrics/resources", nil, "costs nothing until somebody asks"},
	{[]string{"server/parts"}, "the logs of a server's parts, and how the parts of all servers are", []string{"apiserver", "apiserver/auth", "controllers/reconcile/actions", "internal/{clip,parts,trust}"}, "logs are in memory only: watching the loops writes nothing"},
	{[]string{"server/offline"}, "the data directory of a server that does not run: restore, verify, recover", []string{"raftstore/record", "internal/{process,trust}", "raftstore", "raftstore/{backup,founded}", "server/{admin,peers,removed}"}, "a data directory is changed only after all checks have passed"},
	{[]string{"server/firstroutes"}, "older Gateways, routes and Ingresses take nothing of younger ones of other namespaces", []string{"agent/net/router/{gateway,table}", "apiserver/auth", "internal/{gatewayapi,reserved}"}, "who has a host say the tables by which nodes serve"},
	{[]string{"server/expiry"}, "when the certificates end that a server uses or knows", []string{"apiserver/{resource,storage}", "internal/trust"}, "what ends is told by one list: in metrics and in the status"},
	{[]string{"server/access"}, "authentication and authorization of one server", []string{"apiserver/auth/{authconfig,authzconfig,rbac,reviews,tokens}", "apiserver/{auth,storage}", "internal/{revocation,trust}", "apiserver/resource"}, "the order of authenticators and authorizers is decided in one place"},
	{[]string{"server/rotations"}, "what a server makes of the rotations of keys that are under way, and the leader's steps", []string{"apiserver/{resource,storage}", "internal/{rotation,trust}", "internal/trust/storagekeys"}, "one loop for all kinds: each has a mechanism that is handed in"},
	{[]string{"server/peers"}, "how a server reaches other servers, nodes and pods", []string{"agent/simulated", "internal/{failover,poddial,revocation,trust}"}, "each connection checks the certificate for the name that it dialled"},
	{[]string{"server/auditlog"}, "the audit log: policy, bounded buffer, file", []string{"internal/clip"}, "a stalled disk delays no request: records are dropped and counted"},
	{[]string{"server/backups"}, "backups by a schedule, and what a place of them holds", []string{"internal/process", "raftstore/backup", "server/backups/{place,sealed}"}, "a store that can be backed up does not know when"},
	{[]string{"server/removed"}, "what a server that was removed from its cluster answers, and the note by which it knows", []string{"internal/{durable,strangers,trust}"}, "it opens nothing of what the server has stored"},
	{[]string{"server/backups/place"}, "where the files of backups are: a folder, or a bucket of an object store", []string{"internal/durable"}, "a file is there whole, and was read back, or it is not there"},
	{[]string{"server/backups/sealed"}, "backups that are encrypted to people who are not there", nil, "a server cannot open what it has made"},
	{[]string{"server/drain"}, "ends requests and streams when a server stops", nil, "requests finish, streams go on elsewhere"},
	{[]string{"server/http2buffer"}, "writes headers and body of an HTTP/2 answer together", nil, "x/net/http2 sends headers before it has the body, which costs a TLS record and a system call for each answer"},
	{[]string{"server/leader"}, "leadership of the store as terms of the control loops, and the Leases that show it", []string{"internal/clusterclock"}, "Leases show leadership and do not grant it: the fence does"},
	{[]string{"server/kubernetesservice"}, "the Service by which pods find the API, and what is told of the servers", []string{"controllers/reconcile", "internal/reserved"}, ""},
	{[]string{"server/serverpods"}, "the pods under which the parts of servers are seen", []string{"controllers/reconcile", "controllers/reconcile/conditions", "internal/parts"}, "they are mirror pods of a node that does not exist, so no scheduler and no agent touches them"},
	{[]string{"deploy/release"}, "what a release has beside its binaries: the licences of all that is linked, and an image", nil, "what a binary holds is read from it, so that nothing can be forgotten"},
	{[]string{"deploy/systemd"}, "the units by which servers and agents run on machines with systemd", nil, "the files that are copied by hand and those that are installed are the same"},

	{[]string{"internal/house"}, "the rules of the house, as tests of the source", nil, "it links nothing of the product, so the rules are judged in seconds"},
	{[]string{"internal/kubectlrun"}, "kubectl in this process, on any cluster", nil, "what kubectl does is done by kubectl; it is large, so few link it"},
	{[]string{"internal/testlink"}, "how a test reaches `setpoint testserver`: the binary, the private folder, one start, a session", []string{"internal/process"}, "one server serves the tests of all packages, and what a test made ends with its process"},
	{[]string{"internal/testclient"}, "what a test asks of a cluster through its API: objects, conditions, CRDs and webhooks, programs under test", []string{"internal/{freeport,trust}"}, "a test means the same beside the cluster's process and inside it, and links no control plane for it"},
	{[]string{"internal/podfields"}, "what agents and the API do with each field of a pod's spec", nil, "agents refuse and the API warns by the same table"},
	{[]string{"internal/clusterdns"}, "the names by which the parts of a cluster agree on its DNS", nil, "the Service is kept, served, configured and has its address by the same names"},
	{[]string{"internal/gatewayapi"}, "the kinds of the Gateway API, and informers that begin when they are served", []string{"internal/shares"}, "nodes, the loop and the API agree on what a Gateway may refer to"},
	{[]string{"internal/gatewayapi/definitions"}, "the definitions of the Gateway API that the cluster brings along", nil, "generated, and parsed only when one is missing"},
	{[]string{"internal/gatewayapi/definitions/generate"}, "the command that makes them from the module in go.mod", nil, "third-party files are not committed by hand"},
	{[]string{"internal/localvolume"}, "what the controller of local volumes and the agents say to each other", nil, "both sides use one name for each thing"},
	{[]string{"internal/gates"}, "upstream's feature gates, and what becomes of each", nil, "a flag that nobody honours is refused by name"},
	{[]string{"internal/unattended"}, "fields of Services that are accepted although nothing acts on them yet", nil, "the API warns and a controller writes events by the same list"},
	{[]string{"internal/simulatednode"}, "which Nodes have no machine", nil, "who makes them and who passes them over read one label"},
	{[]string{"internal/servicerange"}, "which addresses of the range of Services are the cluster's own", nil, "servers give them out and agents ask at them, by one rule"},
	{[]string{"internal/wireguardkey"}, "where a node tells the others of its network, and which key of WireGuard it tells", nil, "agents choose by it, servers let no node tell another's key"},
	{[]string{"internal/reserved"}, "addresses and ports of machines that are the cluster's own, and what objects claim of them", []string{"internal/servicerange"}, "servers refuse, loops do not give and nodes do not serve by one book"},
	{[]string{"internal/nodefirewall"}, "the condition by which a node tells what firewalls of its machine block", nil, "agents write and those who explain read it in one form"},
	{[]string{"internal/poddial"}, "how a server asks the agent of a node to connect it to a pod", nil, "servers need no route to pods"},
	{[]string{"internal/parts"}, "names of the pods under which the parts of servers are seen", nil, "the loop that keeps these pods and those that leave them alone judge by the same names"},
	{[]string{"internal/process"}, "settings of a whole process: garbage collection, timer slack, the lock of a data directory", nil, "commands change these settings; the library does not"},
	{[]string{"internal/process/startup"}, "no garbage collection while packages are initialised, and hardly any in short commands", nil, "it imports next to nothing, so that Go initialises it before most others"},
	{[]string{"internal/sdnotify"}, "what systemd is told of a process: ready, progress, stopping", nil, "servers and agents are watched in one way, and only by what they prove"},
	{[]string{"internal/durable"}, "files that a power cut does not take back", nil, "the order of the system calls that this takes stands in one place"},
	{[]string{"internal/aligned"}, "the moments at which loops that look now and then do so, the same for all", nil, "each wake-up of an idle server costs more than the look"},
	{[]string{"internal/zpages"}, "/statusz and /flagz of a part, by upstream's library", nil, "agents serve them and do not import that library"},
	{[]string{"internal/profiles"}, "Go's profiles of a process, at upstream's paths", nil, "servers and agents serve the same ones"},
	{[]string{"internal/clusterclock"}, "the time of one cluster, which Advance moves", nil, "clusters of one process have times of their own"},
	{[]string{"internal/shares"}, "the rule by which tenants share what a process has a limited number of", []string{"internal/clip"}, "one rule and one wording for each limit that tenants meet together"},
	{[]string{"internal/clip"}, "how texts of others are cut before they are kept or logged", nil, "one cut for rings, queues and logs, with a mark that says how long the whole was"},
	{[]string{"internal/sampled"}, "which of the things that anybody can make are told of", nil, "a flood from one address is a line now and then, with a count"},
	{[]string{"internal/cpushare"}, "the processor time of a server, or of a node's port, divided among tenants", []string{"internal/{clip,shares}"}, "an ordinary request pays for two locks, 0.13 us"},
	{[]string{"internal/paidstream"}, "streams whose bytes wait for their tenant's time", nil, "servers and nodes let the same streams pay, after a connection has been taken over, too"},
	{[]string{"internal/strangers"}, "limits on connections whose clients are not known yet", []string{"internal/{sampled,shares}"}, "idle unauthenticated connections cannot use up the limit of open files"},
	{[]string{"internal/pagetest"}, "tables of the documentation that tests compare with what code says", nil, "one form of marks, and one -update, for every such table"},
	{[]string{"internal/reread"}, "files that are read again while a server runs, and which mistakes were told", []string{"internal/aligned"}, "a mistake is told once and judged once, wherever it is"},
	{[]string{"internal/histograms"}, "options of histograms with native buckets", nil, "one place decides what each series costs"},
	{[]string{"internal/freeport"}, "loopback ports for tests, that nobody else takes", nil, "a port that the system chose may be given to another process once nobody listens on it"},
	{[]string{"apiserver/admission/firstclaims"}, "older objects take nothing of younger ones of other namespaces", []string{"apiserver/auth", "internal/reserved"}, "who has what is the oldest object's, and objects can be changed"},
	{[]string{"apiserver/admission/revocations"}, "who writes the list of what is revoked, and what stands in it", []string{"internal/revocation"}, "nobody shuts out himself, or the cluster"},
	{[]string{"apiserver/admission/rotations"}, "who writes how far rotations of keys are", []string{"internal/{rotation,trust}"}, ""},
	{[]string{"internal/rotation"}, "how a key is replaced while everything runs: kinds, phases, the state as it is stored, the plan", nil, "pure: a leader that follows another goes on where that one stopped"},
	{[]string{"internal/revocation"}, "who is shut out: the list as it is stored, and the judge that every door asks", []string{"internal/trust"}, "one judgement for requests, sessions, Raft, gossip and the kubelet's port"},
	{[]string{"internal/trust"}, "keys and certificates of a cluster: making, reading, renewing", []string{"internal/{clip,clusterclock,servicerange}", "internal/trust/{kubeconfigs,secretfile,storagekeys,tokens}"}, "servers, agents and the command use it"},
	{[]string{"internal/trust/kubeconfigs", "internal/trust/secretfile", "internal/trust/storagekeys", "internal/trust/tokens"}, "the texts of kubeconfigs, of tokens to join with and of the keys of the store; files that a crash must not break", []string{"internal/durable", "internal/trust/secretfile"}, "internal/trust writes and reads them, and knows no more of either"},
	{[]string{"internal/trust/join", "internal/trust/jointoken"}, "joining; tokens to join with", []string{"internal/trust/{join,tokens}", "internal/{clip,sampled,trust}"}, "a node's name is signed for whoever holds its key"},
	{[]string{"internal/failover"}, "connections to servers, and the choice of a server that answers", []string{"internal/{clusterlife,revocation,trust}"}, "agents and servers reach servers in one way"},
	{[]string{"internal/clusterlife"}, "which life of the cluster a node belongs to, and the refusal of another", nil, "a node never takes another cluster's list of pods for its own"},

	{[]string{"raftstore"}, "the store's face: Propose, ReadIndex, Watch, Leadership", []string{"raftstore/record", "raftstore/{backup,command,contact,forward,founded,replica,state,watch}", "raftstore/replica/birth", "internal/aligned"}, "does not know Kubernetes, so that a fault in the API cannot damage what is stored"},
	{[]string{"raftstore/contact"}, "whether this server still has a leader", nil, "requests, watches, sessions and health follow one verdict"},
	{[]string{"raftstore/founded"}, "the record, outside of data directories, that the cluster was founded", nil, "servers that lost their data do not found another cluster"},
	{[]string{"raftstore/replica"}, "raft, files, checksums", []string{"raftstore/replica/*", "raftstore/command", "raftstore/founded", "raftstore/state", "internal/{aligned,durable}"}, "the only importer of hashicorp/raft and bbolt: one package knows what their API really promises"},
	{[]string{"raftstore/replica/transport"}, "raft's network connections, and the member id that each one calls", []string{"internal/aligned"}, "part of the one importer of hashicorp/raft"},
	{[]string{"raftstore/replica/marks"}, "who a server is and how far its log was committed, apart from the log", []string{"internal/durable"}, "a log that was put back to an earlier state shows no damage, so what was committed is recorded elsewhere too"},
	{[]string{"raftstore/replica/birth"}, "the name of a new life, and its first revision, term and index", nil, "a restored cluster never reuses a revision, term or index of the former one"},
	{[]string{"raftstore/replica/headroom"}, "free space on the disks", []string{"raftstore/replica/diskreserve"}, "writes fail before a disk is full"},
	{[]string{"raftstore/replica/sealed"}, "snapshots in files, and what proves that they are what was written", []string{"raftstore/replica/{diskreserve,logbridge}"}, "the library's checksum leaves out the description of a snapshot"},
	{[]string{"raftstore/replica/raftdir"}, "the directory of the log, of term and vote, and the move of an older release's log", []string{"internal/durable", "raftstore/replica/{boltfile,marks,segments,termstore}"}, "where the log is, and whose lock guards it, is known in one place"},
	{[]string{"raftstore/replica/memorylog"}, "what the disks of tests keep a log in", []string{"raftstore/command", "raftstore/replica/entrysum", "raftstore/replica/segments", "raftstore/replica/termstore"}, "tests look at a log as it is kept in production"},
	{[]string{"raftstore/replica/heldstate"}, "a state in memory in the place of a snapshot's bytes", []string{"raftstore/state"}, ""},
	{[]string{"raftstore/replica/{diskreserve,segments}"}, "the room that a replica holds back; the log in files", []string{"raftstore/replica/eintr"}, "system calls by hand are broken off by signals"},
	{[]string{"raftstore/replica/*"}, "pieces of the replica, each with a test of its own", nil, ""},
	{[]string{"raftstore/state"}, "the state machine", []string{"raftstore/command", "raftstore/record", "raftstore/watch", "raftstore/wire"}, "no clock, randomness, I/O, goroutine: replicas must not differ"},
	{[]string{"raftstore/watch"}, "recent history, watchers", []string{"raftstore/command", "raftstore/record"}, "history is in memory and bounded: a client that asks for older events gets 410 and lists again"},
	{[]string{"raftstore/command"}, "log format", []string{"raftstore/wire"}, "the format can be extended, never changed"},
	{[]string{"raftstore/record", "raftstore/wire"}, "one stored object; encodings that entries and snapshots share", nil, "stored formats can be extended, never changed"},
	{[]string{"raftstore/forward/..."}, "follower → leader", []string{"raftstore/command", "raftstore/forward/forwardpb/...", "raftstore/wire"}, "each question between servers is one call"},
	{[]string{"raftstore/backup"}, "the archive of a store", []string{"raftstore/command", "raftstore/state", "raftstore/wire"}, "an archive can be verified without its cluster"},
	{[]string{"raftstore/history"}, "what objects were, on disk: every change of the last day, and the answers from it", []string{"internal/{aligned,durable}", "raftstore/command", "raftstore/record", "raftstore/state", "raftstore/watch", "raftstore/wire"}, "it follows what was applied: nothing waits for it, and without it the store is what it was"},
	{[]string{"raftstore/raftstoretest"}, "clusters in a bubble, for tests", []string{"raftstore", "raftstore/command", "raftstore/founded", "raftstore/replica", "raftstore/state", "raftstore/watch"}, ""},

	{[]string{"apiserver"}, "request chain, routing", []string{"apiserver/{auth,crd,flowcontrol,requestmetrics,resource,rest,storage}", "apiserver/auth/{reviews,tokens}", "apiserver/rest/stack", "internal/{cpushare,paidstream,reserved,sampled,shares,trust}", "internal/revocation"}, "what only some clusters have is handed in by package server; what every request passes is imported"},
	{[]string{"apiserver/storage"}, "objects ↔ records, lists, pages, watches, transactions",
		[]string{"apiserver/resource", "raftstore", "raftstore/command", "raftstore/history", "raftstore/record", "raftstore/state", "raftstore/watch"}, "the only door to the store"},
	{[]string{"apiserver/rest"}, "verbs and subresources",
		[]string{"apiserver/rest/*", "apiserver/admission/quota", "apiserver/auth", "apiserver/auth/reviews", "apiserver/auth/tokens", "apiserver/flowcontrol", "apiserver/kinds/column", "apiserver/managedfields", "apiserver/resource", "apiserver/storage", "internal/{clip,cpushare,reserved,unattended}"},
		"every write is decided here: current object, patch, admission, validation"},
	{[]string{"apiserver/rest/proxy"}, "the proxy subresources of nodes, pods and Services", []string{"apiserver/resource", "apiserver/storage"}, "the check of which addresses a client may reach stands in one place"},
	{[]string{"apiserver/rest/addresses"}, "cluster addresses and node ports of Services, which must be unique", []string{"apiserver/resource", "apiserver/storage", "internal/{reserved,servicerange,shares}"}, "claimed in the transaction of the write"},
	{[]string{"apiserver/rest/disruption"}, "what a PodDisruptionBudget says of an eviction, and what it costs", []string{"apiserver/storage"}, "spent in the transaction of the eviction"},
	{[]string{"apiserver/rest/binding"}, "which pods may get a node, and what a pod is that has got one", nil, "the same for bindings in bodies and those of the scheduler"},
	{[]string{"apiserver/rest/table"}, "objects as rows, for kubectl get", []string{"apiserver/resource", "apiserver/storage"}, "cached objects are only read"},
	{[]string{"apiserver/rest/propagation"}, "what becomes of the dependents of an object that is deleted", nil, ""},
	{[]string{"apiserver/rest/mergekeys"}, "what upstream's strategic merge panics at, or takes very long for", nil, ""},
	{[]string{"apiserver/rest/stack"}, "grows the stacks of goroutines that serve requests", nil, ""},
	{[]string{"apiserver/managedfields"}, "managedFields of plain writes", []string{"apiserver/resource"}, "upstream's code computes the fields once for each shape of object"},
	{[]string{"apiserver/rest/podview"}, "what a node sees of pods that are not its own", []string{"apiserver/auth"}, "nodes enforce policies for pods whose secrets are not theirs"},
	{[]string{"apiserver/crd"}, "custom resources: handlers made from definitions when they are asked for", []string{"apiserver/resource", "apiserver/rest", "apiserver/storage"}, "a definition that nobody uses costs only its stored record"},
	{[]string{"apiserver/encryption"}, "how values are encrypted before they are stored: files, keys, KMS plugins; that all are", []string{"apiserver/storage", "internal/{aligned,reread}"}, "`storage` asks it for each kind, which costs one map lookup if the kind is not encrypted"},
	{[]string{"apiserver/aggregation"}, "other API servers: requests passed on, what they offer", []string{"apiserver/discovery", "apiserver/resource", "apiserver/storage", "internal/trust"}, "costs nothing until an APIService names a Service"},
	{[]string{"apiserver/usage"}, "metrics.k8s.io: what nodes and pods use", []string{"apiserver/kinds/column", "apiserver/resource", "apiserver/rest", "apiserver/storage"}, "nodes are asked only while somebody asks the API, by each server for itself"},
	{[]string{"apiserver/resource"}, "the description of a kind: defaults, validation, columns, subresources", nil, "pure: the same object gives the same answer"},
	{[]string{"apiserver/kinds"}, "the list of API groups", []string{"apiserver/kinds/*", "apiserver/resource"}, "pure functions, like the kinds themselves"},
	{[]string{"apiserver/kinds/{claim,column,podspec,podwarnings,rule,volume,workload}"}, "what several kinds share", []string{"apiserver/kinds/{claim,column,podspec,podwarnings,rule}", "apiserver/resource", "internal/{clip,podfields}"}, "pure functions, like the kinds themselves"},
	{[]string{"apiserver/kinds/*"}, "the kinds of one group", []string{"apiserver/kinds/{claim,column,podspec,podwarnings,rule,volume,workload}", "apiserver/resource"}, "a group does not import another one"},
	{[]string{"apiserver/admission/timing"}, "how long admission takes, as metrics", []string{"internal/histograms"}, ""},
	{[]string{"apiserver/runtimeconfig"}, "what --runtime-config may say of the versions of APIs", []string{"apiserver/kinds"}, "what is served is served, and a flag that says otherwise is refused by name"},
	{[]string{"apiserver/admission/optional"}, "admission plugins that run only if a flag names them", []string{"apiserver/kinds/rule"}, "functions of the request, the namespace and the administrator's file"},
	{[]string{"apiserver/admission/configuration"}, "the file with what admission plugins are told", []string{"apiserver/admission/choice"}, "a configuration reaches its plugin or is refused by name"},
	{[]string{"apiserver/admission/choice"}, "which admission plugins there are, which run, and which flags may say otherwise", nil, "what keeps tenants and nodes apart cannot be left out"},
	{[]string{"apiserver/admission"}, "admission plugins: defaults and checks after decoding", []string{"apiserver/admission/{choice,timing}", "apiserver/auth", "apiserver/resource", "apiserver/storage", "internal/{reserved,servicerange,simulatednode,trust,wireguardkey}"}, "reads this replica's tables, never over the network"},
	{[]string{"apiserver/admission/quota"}, "ResourceQuota: usage charged in the write's transaction", []string{"apiserver/resource", "apiserver/storage"}, "`rest` calls it inside the decision of a write"},
	{[]string{"apiserver/admission/manifests"}, "webhooks and policies in files", []string{"apiserver/kinds/admissionregistration", "apiserver/resource", "internal/reread"}, "a mistake in a file keeps a server from starting"},
	{[]string{"apiserver/admission/dynamic"}, "webhooks and policies", []string{"apiserver/admission/manifests", "apiserver/storage"}, "a plugin is built when the first configuration for it exists"},
	{[]string{"apiserver/auth"}, "authentication by certificate, and what nodes may do", []string{"apiserver/resource", "apiserver/storage", "internal/{reserved,revocation,shares}", "internal/trust", "internal/trust/tokens", "internal/clusterdns"}, ""},
	{[]string{"apiserver/auth/tokens", "apiserver/auth/rbac", "apiserver/auth/reviews"}, "tokens of service accounts; roles; questions about users", []string{"apiserver/resource", "apiserver/storage"}, "a decision reads this replica only, without a lock"},
	{[]string{"apiserver/auth/rbac/policy"}, "the roles and bindings of every cluster", nil, ""},
	{[]string{"apiserver/auth/authconfig"}, "authentication by OIDC issuers and anonymous requests, from a file", []string{"internal/reread"}, "an issuer that does not answer must not keep a server from starting"},
	{[]string{"apiserver/auth/authzconfig"}, "webhooks that authorize, from a file", []string{"internal/reread"}, "no webhook can keep administrators and servers out"},
	{[]string{"apiserver/discovery/..."}, "discovery, OpenAPI, version, health, metrics", []string{"apiserver/discovery/openapigen/dump", "apiserver/resource", "internal/sampled"}, ""},
	{[]string{"apiserver/requestmetrics"}, "how many requests were answered and how long they took, under upstream's names", []string{"internal/histograms"}, "counted in one place, after authorization, as upstream does"},
	{[]string{"apiserver/explain"}, "why an object is held: causes, changes, and what is innocent", []string{"apiserver/rest/disruption", "internal/{nodefirewall,parts}"}, "pure: it repeats what those say who decided, and decides nothing a second time"},
	{[]string{"apiserver/podlistener"}, "the way of this machine's pods to a server on loopback", nil, "`dev` opens no port to others"},
	{[]string{"apiserver/flowcontrol"}, "priority and fairness: FlowSchemas and priority levels", []string{"internal/shares"}, "an ordinary request only pays for classification"},

	{[]string{"controllers"}, "the list of controllers", []string{"controllers/*", "controllers/reconcile/{numbers,recording}", "internal/servicerange"}, "client-go only: could run outside, against any Kubernetes API"},
	{[]string{"controllers/reconcile/..."}, "what all control loops share: the loop, its Env, caches; adoption, pod state, conditions", []string{"controllers/reconcile", "controllers/reconcile/{actions,adopt,conditions,numbers,pace}", "internal/{clip,histograms}"}, "each rule of them has one place"},
	{[]string{"controllers/*/..."}, "one control loop each", []string{"controllers/podnetwork", "controllers/reconcile/...", "internal/{aligned,clusterclock,parts,servicerange,shares,unattended}"}, "a control loop does not import another one"},
	{[]string{"controllers/dnsservice"}, "the Service by which pods ask for names", []string{"controllers/reconcile", "internal/clusterdns"}, ""},
	{[]string{"controllers/loadbalancer"}, "the addresses of Services of the type LoadBalancer", []string{"controllers/reconcile", "internal/{reserved,servicerange,shares,simulatednode}"}, ""},
	{[]string{"controllers/localvolume"}, "PersistentVolumes on the disks of nodes", []string{"controllers/reconcile/...", "internal/{localvolume,simulatednode}"}, "it asks agents through the API, so it needs no connection of its own"},
	{[]string{"controllers/replicationcontroller"}, "ReplicationControllers, as ReplicaSets", []string{"controllers/{reconcile,replicaset}"}, "one loop keeps both"},
	{[]string{"controllers/scheduler"}, "the scheduler: queue, cycles, bindings", []string{"controllers/reconcile", "controllers/reconcile/{conditions,numbers,pace,recording}", "controllers/scheduler/*", "internal/{clusterclock,shares}"}, "what is placed where is said by its pure packages"},
	{[]string{"controllers/scheduler/devices"}, "devices for ResourceClaims: the choice, the promises, the writes", nil, "knows client-go and upstream's search only, so it is tested without the scheduler"},
	{[]string{"controllers/scheduler/views"}, "how many placed pods are where: the counts that plugins ask for, kept up pod by pod", nil, "pure, and shared by all classes of pods: the cost of a placement follows what changed"},
	{[]string{"controllers/scheduler/budgets"}, "which evictions PodDisruptionBudgets allow now", []string{"controllers/scheduler/plugin"}, "pure but for a lister"},
	{[]string{"controllers/scheduler/points"}, "how long the scheduler's extension points take", nil, "pure but for a histogram"},
	{[]string{"controllers/scheduler/volumebinding"}, "the volumes that a pod's claims get before it is bound: the writes, and the wait", []string{"controllers/scheduler/plugin"}, "knows client-go only; what to write is the scheduler's decision"},
	{[]string{"controllers/scheduler/storageroom"}, "where the drivers of volumes have room", []string{"controllers/scheduler/plugin"}, "pure but for listers"},
	{[]string{"controllers/scheduler/owners"}, "the pods that belong together with a pod", []string{"controllers/reconcile", "controllers/scheduler/plugin"}, "reads informers only"},
	{[]string{"controllers/scheduler/plugin"}, "extension points of the scheduler", []string{"controllers/scheduler/views"}, "pure: the same cluster gives the same placement"},
	{[]string{"controllers/scheduler/plugins"}, "the plugins of the scheduler", []string{"controllers/scheduler/{plugin,views}"}, "pure: the same cluster gives the same placement"},
	{[]string{"controllers/scheduler/podkey"}, "which pods are interchangeable for the scheduler", []string{"controllers/scheduler/{plugin,plugins}"}, "pure: the scheduler remembers by it what it found out for equal pods"},
	{[]string{"controllers/scheduler/profile"}, "the scheduler's configuration: which plugins, weights and limits pods of a schedulerName meet", []string{"controllers/scheduler/plugin", "controllers/scheduler/plugins"}, "read once, at the start of a server: a mistake in the file is found there"},

	{[]string{"agent/host"}, "what makes this machine a node: joining, the runtime, the proof that it lives", []string{"agent", "agent/{kubeletconfig,node}", "agent/base/{machine,oom,private}", "agent/net/{dns,hostfirewall,network,owntraffic,policy,router}", "agent/net/network/{announce,ownaddress,plan,upkeep}", "agent/net/policy/table", "agent/node/{gossip,knownservers,session}", "agent/pods/eviction", "agent/runtime/{collect,cri,logs,userns}", "agent/runtime/cri/{embedded,remote,serve}", "agent/runtime/cri/embedded/{images,imagesocket,registries}", "agent/runtime/images/credentials", "internal/trust/join", "internal/{clusterlife,failover,process,reserved,sdnotify,servicerange,trust}", "agent/node/revoked", "internal/revocation"}, "imports nothing of servers, because a machine may run pods only"},
	{[]string{"agent"}, "the wiring of an agent's rooms into one Run", []string{"agent/{kubeletconfig,node,pods,simulated,volumes}", "agent/{api,base,net,pods,resources,volumes}/*", "agent/api/kubeletapi/access", "agent/net/network/{plan,probe,upkeep}", "agent/net/router/table", "agent/runtime/{collect,cri,images,logs,noswap,podconfig,userns}", "agent/runtime/cri/embedded/selinux", "agent/runtime/images/peers", "internal/{localvolume,nodefirewall,reserved,servicerange}", "internal/revocation"}, "it uses the API as any client, so a stock kubelet can take its place"},
	{[]string{"agent/kubeletconfig"}, "a kubelet's configuration, for the parts of the agent", []string{"agent/pods/{eviction,shutdown}", "agent/resources/pinning", "agent/resources/topology/...", "agent/runtime/{collect,images,userns}", "agent/runtime/images/credentials"}, "each part's policy is its own; here it is only filled in"},
	{[]string{"agent/reset"}, "removing what a cluster has left on a machine", []string{"agent/runtime/cri/embedded/leftovers", "agent/base/machine", "agent/net/network", "agent/runtime/{logs,podconfig}", "agent/volumes/local", "internal/{process,trust}"}, "the packages that make these things know how to find and remove them"},
	{[]string{"agent/simulated"}, "nodes without machines", []string{"agent/base/wait", "agent/node", "agent/pods/status", "internal/{clusterclock,simulatednode}"}, "servers make them too, so no part of a real node's machine is linked"},
	{[]string{"agent/base/..."}, "room: what every part of an agent uses, and what knows no other part", []string{"agent/base/{machine,wait}"}, "whatever is above can use it"},
	{[]string{"agent/base/machine/machinetest/{leftovers,nodestate}"}, "what pods have left behind on a machine, and what is wrong with nodes, for tests", nil, "it finds things in other ways than the agent, and the load harness, a module of its own, imports it without our libraries"},
	{[]string{"agent/net", "agent/net/{ipfamily,resolvconf}", "agent/net/network/{link,networktest,nft}"}, "room: the network of a node; here what all of it stands on: families, netlink, nftables, resolv.conf", nil, "the only ways to netlink and nftables: one package knows what their buffers hold and what their errors mean"},
	{[]string{"agent/net/network"}, "the addresses and links of pods, and the ways to them", []string{"agent/base/wait", "agent/net/ipfamily", "agent/net/network/{adopt,bandwidth,guard,iptables,link,nft,nodeway,ownaddress,plan,probe,upkeep,vxlanends,wireguard}"}, "netlink and nftables only: no CNI executables, no iptables"},
	{[]string{"agent/net/network/*"}, "pieces of the network, each of which keeps one thing of the kernel", []string{"agent/base/{private,wait}", "agent/net/ipfamily", "agent/net/network/{iptables,link,nft,upkeep}", "internal/nodefirewall"}, "which ways there are is chosen above them"},
	{[]string{"agent/net/network/plan", "agent/net/policy/plan"}, "how the pods of one node reach those of another, and why so; the meaning of NetworkPolicies", []string{"agent/net/ipfamily", "internal/wireguardkey"}, "pure: nodes act and those who explain tell by the same facts, and every scenario is a row of a table"},
	{[]string{"agent/net/{hostfirewall,owntraffic,policy,services}", "agent/net/policy/table"}, "what follows the cluster and keeps the kernel's rules to it: ports of the machine, our own traffic, NetworkPolicies, Services", []string{"agent/base/wait", "agent/net/{dns,ipfamily,network}", "agent/net/network/{nft,upkeep}", "agent/net/policy/plan", "internal/{reserved,simulatednode}"}, "what the rules mean is pure, so that `setpoint net trace` asks the same functions"},
	{[]string{"agent/net/dns", "agent/net/dns/kept"}, "the cluster's DNS on a node: listeners, who answers, the form of answers, and the file that it answers from without a server", []string{"agent/base/{private,wait}", "agent/net/resolvconf", "agent/net/dns/{corefile,forward,kept,records}", "internal/{clusterdns,shares,strangers}"}, "names are answered from the node's own view, also while no server is there"},
	{[]string{"agent/net/dns/{corefile,forward,records}"}, "the part of CoreDNS's configuration that is honoured; other servers' answers; the records of the cluster's names", []string{"internal/shares"}, "they know nothing of the node, and every name is a row of a table"},
	{[]string{"agent/net/router"}, "Ingresses and Gateways on the ports of a node", []string{"agent/base/wait", "agent/net/router/{gateway,hosts,table}", "internal/{clip,gatewayapi,reserved,shares,strangers}"}, "where a request goes is decided by its tables, which are pure"},
	{[]string{"agent/net/router/{gateway,hosts,table}"}, "where a request goes, by Ingresses, Gateways and their routes; whose a host is", []string{"agent/net/router/{hosts,table}", "internal/{gatewayapi,reserved,servicerange,shares}"}, "pure: nodes serve and the loops tell by one result"},
	{[]string{"agent/runtime", "agent/runtime/{collect,images,logs,noswap,observed,podconfig,userns}"}, "room: the container runtime and what is asked of it; here a pod's spec as a runtime takes it, what the runtime has, images, logs", []string{"agent/base/{backoff,events,hugepages,private,wait}", "agent/net/resolvconf", "agent/runtime/{cri,observed,userns}", "agent/runtime/images/credentials", "internal/{podfields,shares}"}, "they speak CRI, so any runtime will do; who may use an image is kept apart from who has it"},
	{[]string{"agent/runtime/images/{credentials,peers}"}, "credentials of registries that plugins have; layers of images from other nodes", nil, "what comes from outside is bounded and checked, so they need not know whom they ask"},
	{[]string{"agent/runtime/cri", "agent/runtime/cri/{remote,serve}"}, "CRI as the agent uses it; runtimes of others, ours for others", []string{"agent/base/private", "agent/runtime/cri", "internal/podfields"}, "each is a cri.Runtime or takes one"},
	{[]string{"agent/runtime/cri/embedded"}, "the container runtime that is built in", []string{"agent/base/{machine,private}", "agent/net/network", "agent/net/network/bandwidth", "agent/runtime/cri", "agent/runtime/cri/embedded/*", "internal/podfields"}, "it is a cri.Runtime like any other: the agent can do without it"},
	{[]string{"agent/runtime/cri/embedded/*"}, "pieces of the runtime: control groups, images, walls, the helper executable, what a machine can do, what is left over", []string{"agent/base/{machine,private}", "agent/net/network", "agent/runtime/cri/embedded/{boot,cgroup,images,registries,shim,shimbinary,trial}", "agent/runtime/images/peers"}, "none of them knows a pod's life, which is the runtime's"},
	{[]string{"agent/runtime/cri/embedded/{apparmor,capabilities,cdi,demo,reap,registries,seccomp,shimbinary,streams}"}, "pieces of the runtime that know no other", nil, ""},
	{[]string{"agent/runtime/cri/embedded/{boot,shim}/..."}, "processes that run once per container and pod", []string{"agent/runtime/cri/embedded/{boot,shim}"}, "standard library and x/sys only: every pod pays for what they link"},
	{[]string{"agent/resources/..."}, "room: CPUs, memory and devices that a pod has for itself: the managers, and plugins of devices and claims", []string{"agent/base/{private,registration,wait}", "agent/base/registration/registrationtest", "agent/resources/topology", "agent/resources/topology/{cpus,memory}", "agent/resources/devices/ledger", "agent/runtime/{observed,podconfig}"}, "what a pod has is on disk before its container is made, so nothing is given twice"},
	{[]string{"agent/resources/topology/...", "agent/resources/devices/ledger"}, "who gets which CPU, memory and device: hints, the policies that merge them, the choice", []string{"agent/base/hugepages", "agent/resources/topology", "agent/resources/topology/statefile"}, "pure, so that it can be compared with a kubelet's managers on any machine"},
	{[]string{"agent/volumes"}, "room: volumes of pods; here what a pod's volumes are made of", []string{"agent/base/hugepages", "agent/runtime/podconfig", "agent/volumes/csi", "internal/localvolume"}, "objects are read by lookups that are handed in"},
	{[]string{"agent/volumes/..."}, "CSI drivers and what they tell, volumes on this node's disk, watched ConfigMaps and Secrets, how full volumes are", []string{"agent/base/{events,machine,private,registration,wait}", "agent/base/registration/registrationtest", "agent/runtime/podconfig", "agent/volumes/csinode", "internal/{durable,localvolume,shares}"}, "what was asked of a driver is on disk, so it can be taken back"},
	{[]string{"agent/pods"}, "room: the life and the end of pods; here a worker for each pod", []string{"agent/base/{backoff,events,wait}", "agent/net/resolvconf", "agent/pods/{admission,eviction,probes,status}", "agent/runtime/{cri,images,logs,noswap,observed,podconfig,userns}", "agent/volumes", "internal/podfields"}, "the order of steps in a pod's life is decided in one place"},
	{[]string{"agent/pods/*"}, "what workers ask (admission, probes, status), and what begins and ends pods beside them (static pods, eviction, shutdown)", []string{"agent/base/{events,hugepages,measure,wait}", "agent/pods/status", "agent/runtime/{cri,observed,podconfig}", "internal/reread"}, "the workers are interfaces here, so that no import leads back"},
	{[]string{"agent/node"}, "room: the Node and the proof that it lives; here the Node object and its Lease", []string{"agent/base/{events,hugepages,measure,wait}", "internal/{poddial,process}"}, "none knows of pods"},
	{[]string{"agent/node/knownservers"}, "which servers an agent knows of, over restarts", nil, "what a server told replaces what an administrator wrote on the first day"},
	{[]string{"agent/node/{gossip,session}/..."}, "gossip between members; sessions by which nodes prove that they are alive", []string{"agent/node/session/sessionpb", "agent/node/session/sessionpb/sessionpbconnect", "internal/{aligned,strangers}", "internal/revocation", "internal/trust"}, "agents and servers speak them to each other, so both link them; `gossip` is the only importer of memberlist, so nothing is gossiped without the key"},
	{[]string{"agent/api/..."}, "room: what a node serves to others: a kubelet's port and who may ask it, the sockets for programs that ask for pods and their devices", []string{"agent/api/kubeletapi/access", "agent/base/{measure,wait}", "agent/pods/{probes,status}", "agent/resources/devices/ledger", "agent/resources/topology/memory", "agent/runtime/{cri,observed,podconfig}", "agent/runtime/images/peers", "agent/volumes/local", "internal/{cpushare,localvolume,paidstream,poddial,profiles,sampled,shares,strangers}", "internal/revocation"}, "it reads only, and asks those who know by interfaces"},
	{[]string{"agent/node/revoked"}, "the watch by which an agent knows who is shut out", []string{"internal/revocation"}, "the kubelet's port and the pool ask the same judge as servers do"},
	{[]string{"controllers/gateway"}, "the statuses of the Gateway API's objects", []string{"agent/net/router/{gateway,hosts,table}", "controllers/reconcile", "internal/{gatewayapi,reserved}"}, "nodes and the loop judge by one result"},
	{[]string{"controllers/ingress"}, "the status and the events of Ingresses", []string{"agent/net/router/table", "controllers/reconcile", "internal/gatewayapi"}, "nodes and the loop judge by one table"},

	{[]string{"test/judges"}, "what tools that wait make of a watch, and stories that make them wait", []string{".", "setpointtest"}, "the stories are played beside a tool's own library too"},
	{[]string{"test/*/..."}, "tests that take processes, machines or long, and what they need", []string{"test/vm"}, "they use what a user can use, and no internals"},
	{[]string{"test/together/..."}, "the tests of many packages linked into few programs", []string{"test/together/program"}, ""},
	{[]string{"test/mutants/generated"}, "small changes of the store that nobody chose, and whether its tests notice", []string{"test/mutants"}, "what it changes it reads as text, and imports nothing of"},
	{[]string{"test/consistency/..."}, "servers under faults, judged from what clients were told", []string{"internal/freeport", "test/consistency/*", "test/clockskew", "test/powercut"}, ""},
	{[]string{"test/simulation"}, "the write path in a bubble, without raft", []string{"apiserver/kinds", "apiserver/resource", "apiserver/storage", "raftstore", "raftstore/command", "raftstore/state", "raftstore/watch"}, ""},
	{[]string{"test/simulation/replicas/..."}, "whole servers in a bubble, with raft inside and one event at a time", []string{"raftstore", "raftstore/command", "raftstore/replica", "raftstore/replica/memorylog", "raftstore/replica/segments", "raftstore/raftstoretest", "raftstore/watch"}, "what a seed chooses has to reach raft, its log and its messages"},
}

// A room is a row of the table.
type room struct {
	packages  []string // patterns of folders below the module, "." is the root
	owns      string
	mayImport []string // patterns of packages of the module
	why       string
}

const (
	roomsBegin = "<!-- The table of rooms_test.go: go test ./internal/house -update -->\n"
	roomsEnd   = "<!-- end of the table -->\n"
)

var update = flag.Bool("update", false, "write the table of rooms into docs/internals/packages.md")

func TestHouseRooms(t *testing.T) {
	used := map[string]bool{} // patterns, with the room's first one before them
	eachSource(t, func(f *sourceFile) {
		of, pattern := roomOf(f.dir)
		if of == nil {
			t.Errorf("%s belongs to no room: say what it owns and what it may import", f.dir)
			return
		}
		used[of.packages[0]+pattern] = true
		if !f.test {
			tell(t, roomBreaches(f, of, used))
		}
	})
	rows := map[string]bool{}
	for _, r := range rooms {
		for _, pattern := range slices.Concat(r.packages, r.mayImport) {
			if !used[r.packages[0]+pattern] {
				t.Errorf("room %s: %s matches nothing: delete it", r.packages[0], pattern)
			}
		}
		for _, pattern := range r.packages {
			if rows[pattern] {
				t.Errorf("%s has two rows: keep the one that is true", pattern)
			}
			rows[pattern] = true
		}
	}
}

// roomBreaches are the imports of a file that its room does not allow; it notes in used which patterns the others fit.
func roomBreaches(f *sourceFile, of *room, used map[string]bool) (found []string) {
	for _, imported := range f.imports {
		other, ours := packageOfModule(imported)
		if !ours || other == f.dir {
			continue
		}
		allowed := false
		for _, may := range of.mayImport {
			if _, fits := fit(may, other); fits {
				allowed, used[of.packages[0]+may] = true, true
			}
		}
		if !allowed {
			found = append(found, fmt.Sprintf("%s imports %s\n\twhy not: %s may import what its row in rooms says", f.path, imported, strings.Join(of.packages, ", ")))
		}
	}
	return found
}

// packageOfModule is the folder of an import of ours.
func packageOfModule(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// roomOf finds the room whose pattern says most of the package.
func roomOf(dir string) (of *room, pattern string) {
	most := -1
	for i := range rooms {
		for _, p := range rooms[i].packages {
			if score, fits := fit(p, dir); fits && score > most {
				most, of, pattern = score, &rooms[i], p
			}
		}
	}
	return of, pattern
}

// fit reports whether a package fits a pattern, and how much the pattern says: two for each
// folder that it names, one for each "*", and one if nothing may be below.
func fit(pattern, dir string) (score int, fits bool) {
	names, parts := strings.Split(pattern, "/"), strings.Split(dir, "/")
	for i, name := range names {
		if name == "..." {
			return score, true
		}
		if i >= len(parts) || !fitsName(name, parts[i]) {
			return 0, false
		}
		if score++; name != "*" {
			score++
		}
	}
	return score + 1, len(names) == len(parts)
}

// fitsName knows "*" and "{a,b}".
func fitsName(pattern, name string) bool {
	if list, isList := strings.CutPrefix(pattern, "{"); isList {
		return slices.Contains(strings.Split(strings.TrimSuffix(list, "}"), ","), name)
	}
	return pattern == "*" || pattern == name
}

func TestHouseRoomsAreShown(t *testing.T) {
	shows(t, "docs/internals/packages.md", roomsBegin, roomsEnd, roomsTable())
}

func roomsTable() string {
	var b strings.Builder
	b.WriteString("\n| package | owns | may import of ours | why |\n|---|---|---|---|\n")
	for _, r := range rooms {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", quoted(r.packages), r.owns, quoted(r.mayImport), r.why)
	}
	return b.String() + "\n"
}

func quoted(patterns []string) string {
	if len(patterns) == 0 {
		return ""
	}
	return "`" + strings.Join(patterns, "`, `") + "`"
}

func TestHouseFit(t *testing.T) {
	for _, c := range []struct {
		pattern, dir string
		score        int
		fits         bool
	}{
		{".", ".", 3, true},
		{"a", "a", 3, true},
		{"a", "a/b", 2, false},
		{"a/...", "a", 2, true},
		{"a/...", "a/b/c", 2, true},
		{"a/...", "ab", 0, false},
		{"a/*", "a/b", 4, true},
		{"a/*", "a/b/c", 3, false},
		{"a/*/...", "a/b/c", 3, true},
		{"a/*/...", "a", 0, false},
		{"a/{b,c}", "a/c", 5, true},
		{"a/{b,c}", "a/d", 0, false},
	} {
		if score, fits := fit(c.pattern, c.dir); fits != c.fits || fits && score != c.score {
			t.Errorf("fit(%q, %q) = %d, %v", c.pattern, c.dir, score, fits)
		}
	}
}

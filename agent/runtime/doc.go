// Package runtime is a room, a folder of packages: the container runtime, and what an agent asks of it.
//
// It has no code of its own. In the order in which to read what stands in it:
//
//	cri           the runtime as the agent uses it; cri/remote is another one, cri/embedded ours, cri/serve ours for other kubelets
//	observed      what the runtime says that there is
//	podconfig     a pod's spec as a runtime takes it, and the folders of pods
//	userns        which pods have user namespaces, and which users of the host are theirs
//	noswap        what keeps a container from swapping
//	images        which images a pod may use, and pulling them; images/credentials and images/peers say from where
//	collect       images that nobody uses
//	logs          the rotation of containers' logs
//
// Its packages may import agent/base, the network's links (cri/embedded) and resolvconf (podconfig), and each other as the table of
// rooms_test.go says; they know no worker of pods. cri/embedded/boot and cri/embedded/shim are processes of their own and import
// none of this. Tested with tables and fake runtimes; cri/embedded with real containers.
package runtime

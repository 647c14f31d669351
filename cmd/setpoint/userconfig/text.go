package userconfig

// What --help says.
const (
	long = "Print the administrator's kubeconfig of the cluster on this machine. With --merge add it to your own, the first file of\n" +
		"$KUBECONFIG or ~/.kube/config, and make it current there, so that any kubectl in any terminal finds the cluster. What is in that\n" +
		"file under other names stays. --remove takes away what --merge added, while the cluster's own kubeconfig is still there.\n\n" +
		"Its contexts are the servers that are members now, as one of them says: run it again when servers were replaced. While none\n" +
		"answers they are those of the file.\n\n" +
		"With USER it is one for somebody else: with a new key, and a certificate of that name and of the groups of --group, which the\n" +
		"cluster signs until --expires. It gives no rights: bind roles to the name or a group. 'setpoint revoke user/USER' ends it before.\n" +
		"The group system:masters, which may do everything, is given only on a server, where the CA's key is."
	examples = "  setpoint kubeconfig --merge\n  setpoint kubeconfig --kubeconfig /tmp/three/admin.kubeconfig --merge --name three\n" +
		"  setpoint kubeconfig jane --group dev --expires 8h >jane.kubeconfig"
)

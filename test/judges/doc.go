// Package judges reads what a watch tells of an object as the tools do that wait for it, and finds the versions that would mislead them.
//
// It owns the rules, which say of one version of an object whether it is done or has failed: those of kstatus, of Argo CD, of Ansible's
// kubernetes.core, of kubectl, each in our words by their documentation; the World, which knows from all other objects what is true; and
// the Court, which compares both. A version that a rule calls done before the World is as that generation asks, or failed although the
// same generation is done later and nothing stood in its way, is a finding. So is a status that is wrong by itself, whoever reads it: of a
// generation that there is not yet, or that names a Job that never was.
//
// test/scenes and test/rolloutstatus show a Court everything that they make; the stories here play the kinds that no scene has:
// claims, load balancers, Ingresses, Gateways, definitions, APIServices, Namespaces. Nothing is called from outside of test/.
//
// Promises: events are judged in the order of their revisions, which is the order in which they were stored, across kinds. A rule that a
// status of upstream's misleads too has an exception that says so (Rule.misled). Each rule is shown to fail on a wrong status
// (mutants_test.go), and the rule of kstatus is compared with
// kstatus itself (folder kstatus, a module of its own).
package judges

package main

import (
	"fmt"
	"os"
	"os/exec"
)

const (
	policySource = "/etc/policy.conf"
	policyFile   = "/run/policy"
	policyRoot   = "/sys/fs/selinux"
)

// enforcePolicy compiles and loads the policy of the tests, if the kernel has been told to use SELinux.
func enforcePolicy() error {
	if securityModule() != "selinux" {
		return nil
	}
	if err := mountAll([]mount{{"selinuxfs", policyRoot, "selinuxfs", ""}}); err != nil {
		return err
	}
	compile := exec.Command("/usr/bin/checkpolicy", "-M", "-U", "allow", "-o", policyFile, policySource)
	if said, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the policy of SELinux: %s: %w", said, err)
	}
	policy, err := os.ReadFile(policyFile)
	if err != nil {
		return err
	}
	if err := os.WriteFile(policyRoot+"/load", policy, 0); err != nil {
		return fmt.Errorf("load the policy of SELinux: %w", err)
	}
	return os.WriteFile(policyRoot+"/enforce", []byte("1"), 0)
}

// securityModule is the one of several that the kernel has been told to use.
func securityModule() string { return commandLine("security") }

package settings

import (
	"errors"
	"time"

	"github.com/setpoint-io/setpoint/apiserver/admission"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/dnsservice"
	"github.com/setpoint-io/setpoint/controllers/loadbalancer"
	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// Options are a cluster's settings as its administrator writes them. setpoint.Config has the same fields, which say what each means.
type Options struct {
	PodCIDR                     string
	NodeMaskSize, NodeMaskSize6 int
	ServiceCIDR                 string
	LoadBalancerAddresses       string
	ServiceExternalIPs          []string
	SchedulerConfig             string
	DNS                         string
	GatewayAPI                  bool
	LocalVolumes                bool
	SigningDuration             time.Duration
}

// Cluster are a cluster's settings as they are meant. All servers should have the same: those of the one that leads are in force, but
// for ServiceExternalIPs, by which each server judges what it is sent. A value that must outlive a change of servers belongs into the store
// instead, as PodNetwork does.
type Cluster struct {
	// Settings are those that the control loops act by.
	controllers.Settings
	// Scheduling are the scheduler's profiles; zero: upstream's default profile.
	Scheduling profile.Config
	// GatewayAPI makes the definitions of the Gateway API, if they are not there.
	GatewayAPI bool
	// SigningDuration is how long certificates of CertificateSigningRequests are good at most; zero: a year.
	SigningDuration time.Duration
	// ServiceExternalIPs are the namespaces whose Services may have external addresses.
	ServiceExternalIPs admission.ExternalIPs
}

// Parse reads all texts, and the scheduler's file. Its error says all that is wrong.
func (o Options) Parse() (Cluster, error) {
	pods, podsErr := podnetwork.Parse(podnetwork.Flags{
		CIDR: o.PodCIDR, NodeMaskSize: o.NodeMaskSize, NodeMaskSize6: o.NodeMaskSize6, Services: o.ServiceCIDR,
	})
	scheduling, schedulingErr := profile.Read(o.SchedulerConfig)
	balancers, balancersErr := loadbalancer.Parse(o.LoadBalancerAddresses)
	withoutDNS, dnsErr := dnsservice.Parse(o.DNS)
	external := admission.ExternalIPs(o.ServiceExternalIPs)
	return Cluster{
		Settings: controllers.Settings{
			PodNetwork: pods, LoadBalancers: balancers, WithoutDNS: withoutDNS, LocalVolumes: o.LocalVolumes,
		},
		Scheduling: scheduling, GatewayAPI: o.GatewayAPI, SigningDuration: o.SigningDuration, ServiceExternalIPs: external,
	}, errors.Join(podsErr, schedulingErr, balancersErr, dnsErr, external.Validate())
}

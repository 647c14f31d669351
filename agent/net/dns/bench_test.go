package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/net/dns/kept"
)

const manyServices = 10_000

// BenchmarkQuestions: one question after the other of each of some clients by UDP, to a bare server of the library that always
// answers the same, and to ours with 10,000 Services. The answers are not read further than their number.
func BenchmarkQuestions(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		bare := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
			reply := new(dns.Msg).SetReply(m)
			header := dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 5}
			reply.Answer = []dns.RR{&dns.A{Hdr: header, A: net.IPv4(10, 96, 0, 9)}}
			_ = w.WriteMsg(reply)
		})}
		go func() { _ = bare.ActivateAndServe() }()
		b.Cleanup(func() { _ = bare.Shutdown() })
		askInParallel(b, conn.LocalAddr().String())
	})
	b.Run("10000", func(b *testing.B) {
		before := heapBytes()
		s := newServer(Config{
			Informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0), Client: fake.NewClientset(), Network: &held{at: netip.MustParseAddr("127.0.53.9")},
			Domain: "cluster.local", Ports: Ports{DNS: 15353, Metrics: 19153}, Logger: slog.New(slog.DiscardHandler),
		})
		s.view.keep(many())
		held := float64(heapBytes() - before)
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan struct{})
		go func() { s.run(ctx); close(ended) }()
		b.Cleanup(func() { cancel(); <-ended })
		askInParallel(b, "127.0.53.9:15353")
		b.ReportMetric(held/(1<<20), "MiB")
	})
}

func many() (names kept.Names) {
	for i := range manyServices {
		address := netip.AddrFrom4([4]byte{10, 97, byte(i >> 8), byte(i)}).String()
		names.Services = append(names.Services, service("ns", fmt.Sprint("web-", i), nil, corev1.ServiceSpec{ClusterIP: address, ClusterIPs: []string{address}}))
	}
	return names
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func askInParallel(b *testing.B, address string) {
	for up := false; !up; { // until somebody listens
		_, err := dns.Exchange(question(0), address)
		up = err == nil
	}
	questions := packed(b)
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("udp", address)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		answer := make([]byte, dns.MinMsgSize)
		for i := 0; pb.Next(); i++ {
			if _, err := conn.Write(questions[i%len(questions)]); err != nil {
				b.Error(err)
				return
			}
			if n, err := conn.Read(answer); err != nil || n < headerBytes || answer[answersAt] != 1 {
				b.Errorf("%x, %v", answer[:n], err)
				return
			}
		}
	})
}

// Of a DNS message: how long its header is, and where its second byte of the number of answers lies.
const headerBytes, answersAt = 12, 7

// packed are questions of all names, so that clients cost little beside servers.
func packed(b *testing.B) (all [][]byte) {
	for i := range manyServices {
		m, err := question(i).Pack()
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func question(i int) *dns.Msg {
	return new(dns.Msg).SetQuestion(fmt.Sprintf("web-%d.ns.svc.cluster.local.", i%manyServices), dns.TypeA)
}

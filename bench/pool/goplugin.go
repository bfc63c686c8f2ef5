package main

import (
	"context"
	"io"
	"net/rpc"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/taskd-go/task/bench/internal/measure"
	"github.com/taskd-go/task/bench/internal/process"
)

const (
	namePluginRPC  = "go-plugin, net/rpc"
	namePluginGRPC = "go-plugin, gRPC"

	pluginName = "echo"
)

// echoPlugin is the plugin in both forms of go-plugin.
type echoPlugin struct{}

// Server serves the net/rpc form.
func (echoPlugin) Server(*plugin.MuxBroker) (any, error) { return RPC{}, nil }

// Client returns the client of the net/rpc form.
func (echoPlugin) Client(_ *plugin.MuxBroker, c *rpc.Client) (any, error) { return c, nil }

// GRPCServer serves the gRPC form.
func (echoPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	registerGRPC(s)
	return nil
}

// GRPCClient returns the client of the gRPC form.
func (echoPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}

func pluginSet() plugin.PluginSet { return plugin.PluginSet{pluginName: echoPlugin{}} }

func pluginHandshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "BENCH_PLUGIN", MagicCookieValue: "echo"}
}

func servePlugin() error {
	plugin.Serve(&plugin.ServeConfig{HandshakeConfig: pluginHandshake(), Plugins: pluginSet(),
		Logger: hclog.NewNullLogger()})
	return nil
}

func servePluginGRPC() error {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: pluginHandshake(), Plugins: pluginSet(), Logger: hclog.NewNullLogger(),
		GRPCServer: plugin.DefaultGRPCServer,
	})
	return nil
}

func openPluginRPC([]string) (session, error) {
	return openPlugin(namePluginRPC, func(client *rpc.Client, c measure.Case, payload []byte) func() error {
		return rpcCall(client, "Plugin", c, payload)
	})
}

func openPluginGRPC([]string) (session, error) { return openPlugin(namePluginGRPC, grpcCall) }

// A plugged process runs a plugin. Closing end ends it, as the end of this program does.
type plugged struct {
	*plugin.Client
	end io.Closer
}

// openPlugin starts the processes. T is the client type of the form that the contender serves.
func openPlugin[T any](contender string, call func(T, measure.Case, []byte) func() error) (session, error) {
	var processes []plugged
	var clients []T
	s := session{
		caller: func(i int, c measure.Case, payload []byte) (func() error, error) {
			return call(clients[i%len(clients)], c, payload), nil
		},
		close: func() error {
			for _, p := range processes {
				p.Kill()
				p.end.Close()
			}
			return nil
		},
	}
	for range workers {
		p, client, err := startPlugin(contender)
		if p.Client != nil {
			processes = append(processes, p)
		}
		if err != nil {
			return s, err
		}
		clients = append(clients, client.(T))
	}
	return s, nil
}

func startPlugin(contender string) (plugged, any, error) {
	cmd, end, err := process.Command(contender)
	if err != nil {
		return plugged{}, nil, err
	}
	defer cmd.ExtraFiles[0].Close()
	cmd.Stderr = nil // go-plugin reads it
	p := plugged{end: end, Client: plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  pluginHandshake(),
		Plugins:          pluginSet(),
		Cmd:              cmd,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolNetRPC, plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
	})}
	protocol, err := p.Client.Client()
	if err != nil {
		return p, nil, err
	}
	client, err := protocol.Dispense(pluginName)
	return p, client, err
}

package main

import "github.com/spf13/cobra"

func newChaos() *cobra.Command { return &cobra.Command{Use: "chaos", Hidden: true} }

module github.com/taskd-go/task/props

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/taskd-go/task v0.0.0
	pgregory.net/rapid v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

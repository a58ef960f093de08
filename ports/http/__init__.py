"""RabbitMQ's management API and metrics over HTTP: README.md."""

"""Events and the firehose of a broker, as messages to exchanges of RabbitMQ's names: README.md."""

<?php
// php-amqplib over AMQP 0-8, Debian's: `php php_amqplib.php PLACE [SCENARIO...]`, PLACE as programs.py gives it. A line for each function
// scenario_NAME: `ok NAME`, or `failed NAME: why`.
define('AMQP_PROTOCOL', '8.0');
require_once '/usr/share/php/PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

$place = json_decode($argv[1], true);

function channel()
{
    global $place;
    $connection = new AMQPStreamConnection($place['host'], $place['port'], $place['user'], $place['password']);
    return $connection->channel();
}

function same($got, $wanted, $what)
{
    if ($got !== $wanted) {
        throw new Exception($what . ': ' . var_export($got, true) . ', not ' . var_export($wanted, true));
    }
}

function declared($channel)
{
    return $channel->queue_declare('', false, false, true, true)[0];
}

function scenario_properties()
{
    $channel = channel();
    $queue = declared($channel);
    $given = ['content_type' => 'text/plain', 'delivery_mode' => 2, 'priority' => 5, 'correlation_id' => 'c', 'reply_to' => 'r',
        'message_id' => 'm', 'timestamp' => 1200000000, 'type' => 't', 'app_id' => 'a'];
    $headers = ['s' => 'text', 'i' => -7, 'inner' => ['x' => 1]];
    $channel->basic_publish(new AMQPMessage('hello', $given + ['application_headers' => new AMQPTable($headers)]), '', $queue);
    $message = $channel->basic_get($queue, true);
    same($message->body, 'hello', 'body');
    foreach ($given as $name => $value) {
        same($message->get($name), $value, $name);
    }
    same($message->get('application_headers')->getNativeData(), $headers, 'headers');
    same($channel->basic_get($queue), null, 'an empty queue');
}

function scenario_consume_and_acknowledge()
{
    $channel = channel();
    $queue = declared($channel);
    $channel->basic_qos(0, 10, false);
    for ($number = 0; $number < 200; $number++) {
        $channel->basic_publish(new AMQPMessage("m$number"), '', $queue);
    }
    $got = 0;
    $channel->basic_consume($queue, 'tag', false, false, false, false, function ($message) use (&$got) {
        same($message->body, "m$got", 'order');
        $got++;
        $message->ack($got % 3 == 0);
    });
    while ($got < 200) {
        $channel->wait(null, false, 15);
    }
    same($channel->basic_cancel('tag'), 'tag', 'cancel');
}

function scenario_large()
{
    $channel = channel();
    $queue = declared($channel);
    $body = random_bytes(1000000);
    $channel->basic_publish(new AMQPMessage($body), '', $queue);
    same(md5($channel->basic_get($queue, true)->body), md5($body), 'body');
}

function scenario_exchange_and_binding()
{
    $channel = channel();
    $queue = declared($channel);
    $channel->exchange_declare('php-0-8', 'topic', false, false, true);
    $channel->queue_bind($queue, 'php-0-8', 'a.*');
    $channel->basic_publish(new AMQPMessage('yes'), 'php-0-8', 'a.b');
    $channel->basic_publish(new AMQPMessage('no'), 'php-0-8', 'b.a');
    same($channel->basic_get($queue, true)->body, 'yes', 'topic');
    same($channel->basic_get($queue, true), null, 'nothing more');
    $channel->queue_unbind($queue, 'php-0-8', 'a.*');
    same($channel->queue_purge($queue), 0, 'purge');
    same($channel->queue_delete($queue), 0, 'delete');
}

function scenario_return()
{
    $channel = channel();
    $returned = null;
    $channel->set_return_listener(function ($code, $text, $exchange, $key, $message) use (&$returned) {
        $returned = [$code, $key, $message->body];
    });
    $channel->basic_publish(new AMQPMessage('back'), '', 'php-0-8.nowhere', true);
    while ($returned === null) {
        $channel->wait(null, false, 15);
    }
    same($returned, [312, 'php-0-8.nowhere', 'back'], 'return');
}

function scenario_transaction()
{
    $channel = channel();
    $queue = declared($channel);
    $channel->tx_select();
    $channel->basic_publish(new AMQPMessage('1'), '', $queue);
    $channel->tx_rollback();
    $channel->basic_publish(new AMQPMessage('2'), '', $queue);
    $channel->tx_commit();
    same($channel->basic_get($queue, true)->body, '2', 'committed');
}

function scenario_reject_and_recover()
{
    $channel = channel();
    $queue = declared($channel);
    $channel->basic_publish(new AMQPMessage('x'), '', $queue);
    $channel->basic_reject($channel->basic_get($queue)->getDeliveryTag(), true);
    $message = $channel->basic_get($queue);
    same($message->isRedelivered(), true, 'redelivered');
    $channel->basic_ack($message->getDeliveryTag());
    same($channel->basic_get($queue), null, 'acknowledged');
}

function scenario_error_closes_the_channel()
{
    $channel = channel();
    try {
        $channel->queue_declare('php-0-8.none', true);
    } catch (AMQPProtocolChannelException $error) {
        same($error->amqp_reply_code, 404, 'reply code');
        return;
    }
    throw new Exception('it was there');
}

foreach (get_defined_functions()['user'] as $function) {
    $name = substr($function, strlen('scenario_'));
    if (strpos($function, 'scenario_') !== 0 || ($argc > 2 && !in_array($name, array_slice($argv, 2)))) {
        continue;
    }
    try {
        $function();
        echo "ok $name\n";
    } catch (Throwable $error) {
        fwrite(STDERR, $error . "\n");
        echo "failed $name: " . get_class($error) . ': ' . preg_replace('/\s+/', ' ', $error->getMessage()) . "\n";
    }
}

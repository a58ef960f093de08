// Proton's C++ client: each scenario_NAME runs a container of its own against one broker; programs.py says what is printed, and ends what hangs.
#include <proton/annotation_key.hpp>
#include <proton/connection.hpp>
#include <proton/connection_options.hpp>
#include <proton/container.hpp>
#include <proton/delivery.hpp>
#include <proton/error_condition.hpp>
#include <proton/message.hpp>
#include <proton/message_id.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/receiver.hpp>
#include <proton/receiver_options.hpp>
#include <proton/sender.hpp>
#include <proton/sender_options.hpp>
#include <proton/source.hpp>
#include <proton/source_options.hpp>
#include <proton/tracker.hpp>
#include <proton/transport.hpp>
#include <proton/work_queue.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

struct Place {
    std::string url, user, password, node;
};

static void equal(const std::string &got, const std::string &wanted)
{
    if (got != wanted)
        throw std::runtime_error(got + ", not " + wanted);
}

// A client whose steps are functions; what ends it without `done` is its error.
class Client : public proton::messaging_handler {
public:
    std::function<void(proton::connection &)> opened;
    std::function<void(proton::sender &)> sendable;
    std::function<void(proton::tracker &, const std::string &)> settled;
    std::function<void(proton::delivery &, proton::message &)> arrived;
    std::function<void(proton::receiver &)> receiving, drained;
    std::string error;
    proton::connection connection;

    void run(const Place &place, const std::string &password)
    {
        proton::container container(*this);
        proton::connection_options options;
        options.user(place.user).password(password).sasl_allowed_mechs("PLAIN").sasl_allow_insecure_mechs(true);
        container.connect(place.url, options);
        this->container = &container;
        container.run();
        if (!is_done && error.empty())
            error = "it ended early";
    }

    void run(const Place &place)
    {
        run(place, place.password);
        if (!error.empty())
            throw std::runtime_error(error);
    }

    void done()
    {
        is_done = true;
        connection.close();
    }

    void on_connection_open(proton::connection &c) override
    {
        connection = c;
        if (opened)
            opened(c);
    }
    void on_sendable(proton::sender &s) override
    {
        if (sendable)
            sendable(s);
    }
    void on_receiver_open(proton::receiver &r) override
    {
        if (receiving)
            receiving(r);
    }
    void on_receiver_drain_finish(proton::receiver &r) override
    {
        if (drained)
            drained(r);
    }
    void on_message(proton::delivery &d, proton::message &m) override
    {
        if (arrived)
            arrived(d, m);
    }
    void on_tracker_accept(proton::tracker &t) override { told(t, "accepted"); }
    void on_tracker_reject(proton::tracker &t) override { told(t, "rejected"); }
    void on_tracker_release(proton::tracker &t) override { told(t, "released"); }
    void on_transport_error(proton::transport &t) override { failed(t.error().what()); }
    void on_error(const proton::error_condition &e) override { failed(e.what()); }

private:
    proton::container *container = nullptr;
    bool is_done = false;

    void failed(const std::string &why)
    {
        error = why;
        container->stop();
    }

    void told(proton::tracker &t, const std::string &word)
    {
        if (settled)
            settled(t, word);
    }
};

// Send these messages, each of which is to be accepted.
static void send(const Place &place, const std::vector<proton::message> &messages)
{
    Client client;
    size_t sent = 0, accepted = 0;
    client.opened = [&](proton::connection &c) { c.open_sender(place.node); };
    client.sendable = [&](proton::sender &s) {
        while (s.credit() && sent < messages.size())
            s.send(messages[sent++]);
    };
    client.settled = [&](proton::tracker &, const std::string &word) {
        equal(word, "accepted");
        if (++accepted == messages.size())
            client.done();
    };
    client.run(place);
}

// Receive so many messages; `outcome` answers each, else it is accepted.
static std::vector<proton::message> receive(
    const Place &place, size_t count, std::function<void(proton::delivery &, size_t)> outcome = nullptr)
{
    Client client;
    std::vector<proton::message> messages;
    client.opened = [&](proton::connection &c) {
        c.open_receiver(place.node, proton::receiver_options().auto_accept(outcome == nullptr).credit_window(10));
    };
    client.arrived = [&](proton::delivery &d, proton::message &m) {
        messages.push_back(m);
        if (outcome)
            outcome(d, messages.size() - 1);
        if (messages.size() == count)
            client.connection.work_queue().add([&client] { client.done(); });
    };
    client.run(place);
    return messages;
}

static std::vector<proton::message> numbered(size_t count)
{
    std::vector<proton::message> messages;
    for (size_t each = 0; each < count; each++)
        messages.emplace_back(std::to_string(each));
    return messages;
}

static void scenario_log_in(Place place) {
    Client client;
    client.opened = [&](proton::connection &) { client.done(); };
    client.run(place);
    Client other;
    other.opened = [&](proton::connection &) { other.done(); };
    other.run(place, "wrong");
    if (other.error.find("uthent") == std::string::npos)
        throw std::runtime_error("the wrong password: " + other.error);
}

static void scenario_round_trip(Place place) {
    proton::message message("hello");
    message.subject("a subject");
    message.id(proton::message_id("id 5"));
    message.correlation_id(proton::message_id(proton::binary("octets")));
    message.durable(true);
    message.priority(7);
    message.properties().put("text", "value");
    message.properties().put("number", int32_t(-5));
    message.message_annotations().put(proton::annotation_key("x-opt-note"), true);
    send(place, {message});
    proton::message got = receive(place, 1)[0];
    equal(proton::get<std::string>(got.body()), "hello");
    equal(got.subject(), "a subject");
    equal(proton::get<std::string>(got.id()), "id 5");
    equal(proton::get<std::string>(got.properties().get("text")), "value");
    equal(std::to_string(proton::get<int32_t>(got.properties().get("number"))), "-5");
    if (!got.durable() || got.priority() != 7 || !proton::get<bool>(got.message_annotations().get(proton::annotation_key("x-opt-note"))))
        throw std::runtime_error("another header, or another annotation");
}

static void scenario_large(Place place) {
    std::string body(300000, 'x');
    send(place, {proton::message(body)});
    if (proton::get<std::string>(receive(place, 1)[0].body()) != body)
        throw std::runtime_error("another body");
}

static void scenario_order(Place place) {
    send(place, numbered(500));
    std::vector<proton::message> messages = receive(place, 500);
    for (size_t each = 0; each < messages.size(); each++)
        equal(proton::get<std::string>(messages[each].body()), std::to_string(each));
}

static void scenario_outcomes(Place place) {
    send(place, numbered(3));
    receive(place, 3, [](proton::delivery &d, size_t place) {
        if (place == 0)
            d.release();
        else if (place == 1)
            d.modify();
        else
            d.reject();
    });
    std::vector<proton::message> messages = receive(place, 2);
    equal(proton::get<std::string>(messages[0].body()) + proton::get<std::string>(messages[1].body()), "01");
    equal(std::to_string(messages[0].delivery_count()), "0");
}

static void scenario_drain(Place place) {
    send(place, numbered(2));
    Client client;
    size_t count = 0;
    client.opened = [&](proton::connection &c) { c.open_receiver(place.node, proton::receiver_options().credit_window(0)); };
    client.receiving = [&](proton::receiver &r) {
        r.add_credit(10);
        r.drain();
    };
    client.arrived = [&](proton::delivery &, proton::message &) { count++; };
    client.drained = [&](proton::receiver &r) {
        equal(std::to_string(count) + " " + std::to_string(r.credit()), "2 0");
        client.done();
    };
    client.run(place);
}

static void scenario_dynamic_node(Place place) {
    Client client;
    client.opened = [&](proton::connection &c) {
        c.open_receiver("", proton::receiver_options().source(proton::source_options().dynamic(true)));
    };
    client.receiving = [&](proton::receiver &r) { r.connection().open_sender(r.source().address()); };
    bool is_sent = false;
    client.sendable = [&](proton::sender &s) {
        if (!is_sent)
            s.send(proton::message("to a node of its own"));
        is_sent = true;
    };
    client.arrived = [&](proton::delivery &, proton::message &m) {
        equal(proton::get<std::string>(m.body()), "to a node of its own");
        client.done();
    };
    client.run(place);
}

// The text or the number that the broker's description, JSON of one level, has under a name.
static std::string told(const std::string &json, const std::string &name)
{
    size_t at = json.find('"' + name + '"');
    if (at == std::string::npos)
        throw std::runtime_error("nothing is told of " + name);
    at = json.find_first_not_of(" :", at + name.size() + 2);
    if (json[at] == '"')
        return json.substr(at + 1, json.find('"', at + 1) - at - 1);
    return json.substr(at, json.find_first_of(",}", at) - at);
}

int main(int count, char **arguments)
{
    std::string json = count > 1 ? arguments[1] : "";
    std::vector<std::string> chosen(arguments + std::min(count, 2), arguments + count);
    const std::vector<std::pair<std::string, void (*)(Place)>> scenarios = {
        {"log_in", scenario_log_in},
        {"round_trip", scenario_round_trip},
        {"large", scenario_large},
        {"order", scenario_order},
        {"outcomes", scenario_outcomes},
        {"drain", scenario_drain},
        {"dynamic_node", scenario_dynamic_node},
    };
    for (const auto &scenario : scenarios) {
        if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), scenario.first) == chosen.end())
            continue;
        try {
            Place place;
            place.url = "amqp://" + told(json, "host") + ":" + told(json, "port");
            place.user = told(json, "user");
            place.password = told(json, "password");
            place.node = told(json, "queue");
            place.node.replace(place.node.find("%s"), 2, told(json, "client") + "." + scenario.first);
            scenario.second(place);
            std::cout << "ok " << scenario.first << std::endl;
        } catch (const std::exception &error) {
            std::cout << "failed " << scenario.first << ": " << error.what() << std::endl;
        }
    }
    return 0;
}

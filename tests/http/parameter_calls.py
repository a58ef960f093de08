"""Calls about parameters, limits of the virtual host, the cluster's name and password hashes, one behind the other, as lines: of the
administrator, or of the user behind @; a sign before the line says what is compared.

    =  status and whole answer         ~  the status alone
    NNN  RabbitMQ answers that status, 500 for what it does not foresee, and this broker 400 (NNN MMM: MMM)
"""

LINES = """
~ PUT /users/maker {"password":"maker","tags":"policymaker"}
~ PUT /users/seer {"password":"seer","tags":"management"}
~ PUT /users/watcher {"password":"watcher","tags":"monitoring"}
~ PUT /permissions/%2F/maker {"configure":"","write":"","read":""}
= DELETE /operator-policies/%2F/same.o
= GET /parameters
= GET /parameters/federation-upstream
= GET /parameters/nosuch/%2F
= GET /parameters/nosuch/%2F/x
= GET /parameters/vhost-limits
= GET /parameters/vhost-limits/nosuch
= PUT /parameters/federation-upstream/%2F/up {"value":{"uri":"amqp://x"}}
= PUT /parameters/shovel/%2F/up {"value":{"src-uri":"amqp://x"}}
= PUT /parameters/test/%2F/up {"component":"test","vhost":"/","name":"up","value":1}
= PUT /parameters/test/%2F/up {}
= PUT /parameters/test/%2F/up []
= PUT /parameters/test/nosuch/up {"value":1}
= DELETE /parameters/test/%2F/up
= DELETE /parameters/test/nosuch/up
= PUT /parameters/operator_policy/%2F/op {"value":{"pattern":"^y","definition":{"max-length":7},"priority":0,"apply-to":"queues"}}
= PUT /parameters/operator_policy/%2F/op {"value":{"pattern":"^y","definition":{"max-length":8},"priority":0,"apply-to":"queues"}}
= GET /parameters
= GET /parameters/operator_policy
= GET /parameters/operator_policy/%2F
= GET /parameters/operator_policy/%2F/op
= GET /operator-policies
= PUT /parameters/policy/%2F/pp {"value":{"pattern":"^y","definition":{"max-length":7},"priority":0,"apply-to":"queues"}}
= DELETE /parameters/policy/%2F/pp
= DELETE /parameters/operator_policy/%2F/op
= DELETE /parameters/operator_policy/%2F/op
= PUT /parameters/vhost-limits/%2F/limits {"value":{"max-connections":100}}
= PUT /parameters/vhost-limits/%2F/limits {"value":{"max-connections":200}}
= GET /vhost-limits
= GET /vhost-limits/%2F
= GET /vhost-limits/nosuch
= GET /parameters
= GET /parameters/vhost-limits
= GET /parameters/vhost-limits/%2F
= GET /parameters/vhost-limits/%2F/limits
~ PUT /parameters/vhost-limits/%2F/limits {"value":{"max-connections":"x"}}
~ PUT /parameters/vhost-limits/%2F/limits {"value":{"nosuch":1}}
= PUT /parameters/vhost-limits/%2F/limits {"value":5}
= DELETE /parameters/vhost-limits/%2F/limits
= DELETE /parameters/vhost-limits/%2F/limits
= GET /vhost-limits
= PUT /vhost-limits/%2F/max-connections {"value":500}
= PUT /vhost-limits/%2F/max-queues {"value":50}
= PUT /vhost-limits/%2F/max-queues {"value":-5}
= GET /vhost-limits
= PUT /vhost-limits/%2F/max-queues {"value":"5"}
= PUT /vhost-limits/%2F/max-queues {"value":5.5}
= PUT /vhost-limits/%2F/max-queues {"value":null}
= PUT /vhost-limits/%2F/max-queues {"value":true}
= PUT /vhost-limits/%2F/max-queues {}
= PUT /vhost-limits/%2F/max-queues []
= PUT /vhost-limits/%2F/max-nosuch {"value":1}
= PUT /vhost-limits/nosuch/max-queues {"value":1}
= GET /vhost-limits
= DELETE /vhost-limits/%2F/max-queues
= DELETE /vhost-limits/%2F/max-queues
= DELETE /vhost-limits/%2F/max-nosuch
= GET /vhost-limits
= @seer GET /vhost-limits
= @seer GET /vhost-limits/%2F
= @watcher GET /vhost-limits
= @watcher GET /vhost-limits/%2F
= @maker GET /vhost-limits/%2F
= @maker PUT /vhost-limits/%2F/max-queues {"value":5}
= @maker DELETE /vhost-limits/%2F/max-queues
= @maker PUT /parameters/vhost-limits/%2F/limits {"value":{"max-connections":300}}
= @maker GET /parameters
= GET /global-parameters/cluster_name
= GET /global-parameters/nosuch
= PUT /global-parameters/one {"value":{"a":[1,2,{"b":"c"}],"d":null,"e":1.5,"f":false}}
= PUT /global-parameters/one {"name":"one","value":{"a":2}}
= GET /global-parameters/one
= PUT /global-parameters/none {"value":null}
= PUT /global-parameters/list {"value":[]}
= PUT /global-parameters/yes {"value":true}
= GET /global-parameters
= PUT /global-parameters/n {}
= PUT /global-parameters/n []
= DELETE /global-parameters/n
= DELETE /global-parameters/none
= DELETE /global-parameters/list
= DELETE /global-parameters/yes
= DELETE /global-parameters/yes
= @maker PUT /global-parameters/made {"value":1}
= @maker GET /global-parameters/made
= @maker DELETE /global-parameters/made
= @watcher GET /global-parameters
= @seer GET /global-parameters
= @seer GET /parameters
= PUT /cluster-name {"name":"my cluster"}
= GET /cluster-name
= GET /global-parameters
= GET /overview?columns=cluster_name
500 PUT /cluster-name {"name":5}
500 PUT /cluster-name {"name":null}
= PUT /cluster-name {}
= PUT /cluster-name []
= GET /cluster-name
= PUT /global-parameters/cluster_name {"value":"other"}
= @maker PUT /cluster-name {"name":"n"}
= @maker GET /cluster-name
= DELETE /global-parameters/cluster_name
= PUT /cluster-name {"name":"back"}
= POST /definitions {"global_parameters":[{"name":"two","value":{"x":1}},{"name":"cluster_name","value":"imported"}]}
= POST /definitions {"parameters":[{"component":"vhost-limits","vhost":"/","name":"limits","value":{"max-queues":77}}]}
= POST /definitions/%2F {"parameters":[{"component":"vhost-limits","name":"limits","value":{"max-queues":79}}]}
= GET /global-parameters
= GET /vhost-limits
= GET /cluster-name
~ POST /definitions {"parameters":[{"component":"shovel","vhost":"/","name":"s","value":{"x":77}}]}
~ POST /definitions {"parameters":[{"component":"vhost-limits","vhost":"/","name":"limits","value":{"max-nosuch":77}}]}
= DELETE /parameters/vhost-limits/%2F/limits
= PUT /user-limits/seer/nosuch {"value":1}
= PUT /user-limits/seer/max-channels {"value":"x"}
= PUT /user-limits/seer/max-channels {}
= PUT /users/hashed {"password_hash":"kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR","tags":""}
= GET /users/hashed
~ PUT /users/hashed {"password_hash":"!!!!","tags":""}
= PUT /queues/%2F/odd {}
= POST /queues/%2F/odd/get {"count":-5,"ackmode":"ack_requeue_true","encoding":"auto"}
~ POST /exchanges/%2F/amq.default/publish {"properties":{},"routing_key":"odd","payload":"hello","payload_encoding":"string"}
= POST /queues/%2F/odd/get {"count":-5,"ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":0,"ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":"5","ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":"-5","ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":"+5","ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":1.5,"ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":10000000000,"ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":"x","ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":" 5","ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":"1.5","ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":"","ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":null,"ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":true,"ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":[],"ackmode":"ack_requeue_true","encoding":"auto"}
= POST /queues/%2F/odd/get {"count":5,"ackmode":"ack_requeue_true","encoding":"nosuch"}
= POST /queues/%2F/odd/get {"count":5,"ackmode":"ack_requeue_true","encoding":5}
= POST /queues/%2F/odd/get {"count":5,"ackmode":"ack_requeue_true"}
= POST /queues/%2F/odd/get {"count":5,"encoding":"auto"}
= POST /queues/%2F/odd/get {}
500 POST /queues/%2F/odd/get {"count":5,"ackmode":"nosuch","encoding":"auto"}
500 POST /queues/%2F/odd/get {"count":5,"ackmode":"ack_requeue_true","encoding":"auto","truncate":-1}
= POST /queues/%2F/odd/get {"count":5,"ackmode":"ack_requeue_true","encoding":"auto","truncate":0}
= POST /queues/%2F/odd/get {"count":5,"ackmode":"ack_requeue_true","encoding":"auto","truncate":"2"}
= POST /queues/%2F/odd/get {"count":5,"ackmode":"ack_requeue_true","encoding":"auto","truncate":2.5}
= POST /queues/%2F/odd/get {"count":5,"ackmode":"ack_requeue_true","encoding":"auto","truncate":"x"}
= POST /queues/%2F/odd/get {"count":5,"ackmode":"ack_requeue_true","encoding":"auto","truncate":null}
= DELETE /queues/%2F/odd
"""
OWN = ("internal_cluster_id",)  # global parameters that differ from broker to broker


def parsed():
    """(what is compared, user or None, method, path, body or None) of each line."""
    for line in LINES.split("\n"):
        if line:
            how, rest = line.split(" ", 1)
            user = None
            if rest.startswith("@"):
                user, rest = rest[1:].split(" ", 1)
            method, path, *body = rest.split(" ", 2)
            yield how, user, method, path, body[0] if body else None

"""The judge of messages: it must find fault with what is wrong, else the other tests prove nothing."""

import pytest

import protocol

STOPPED = {"seq": 4, "type": "event", "event": "stopped", "body": {"reason": "pause", "threadId": 7}}
ANSWER = {"seq": 5, "type": "response", "request_seq": 3, "success": True, "command": "variables", "body": {
    "variables": [{"name": "x", "value": "1", "variablesReference": 0}]}}


@pytest.mark.parametrize("message", [STOPPED, ANSWER, dict(ANSWER, success=False, message="no", body={})])
def test_right(message):
    assert not protocol.faults_of(message)


def changed(message, **body):
    return dict(message, body=dict(message["body"], **body))


@pytest.mark.parametrize("message, fault", [
    (changed(STOPPED, threadId="7"), "stopped.body.threadId: '7' is no integer"),
    (changed(STOPPED, thread=7), "stopped.body: the protocol has no thread"),
    (dict(STOPPED, body={}), "stopped.body: no reason"),
    (dict(STOPPED, seq=0), "stopped.seq: 0 is out of its range"),
    (dict(STOPPED, event="halted"), "the protocol has no such message"),
    (changed(ANSWER, variables=[{"name": "x", "value": 1, "variablesReference": 0}]),
     "variables.body.variables[0].value: 1 is no string"),
    (changed(ANSWER, variables=[{"name": "x", "value": "\ud800", "variablesReference": 0}]), "half a surrogate"),
    (changed(ANSWER, variables=[{"name": "x", "value": "1", "variablesReference": 1 << 31}]), "out of its range"),
    (dict(ANSWER, success=False), "the protocol has no variables"),
    ({"seq": 1, "type": "response", "request_seq": 1, "success": True, "command": "initialize",
      "body": {"supportsTerminateDebuggee": True}}, "the protocol has no supportsTerminateDebuggee"),
    ([], "is no message"),
])
def test_wrong(message, fault):
    assert any(fault in line for line in protocol.faults_of(message)), protocol.faults_of(message)

//! One question and two clients, over and over, with their answers ever closer together (C16).

use std::path::Path;

use holdfast_testkit::model_server::Step;
use holdfast_testkit::wait::{SOON, scaled};
use holdfast_testkit::{Frame, SseReader, TestClient};
use serde_json::{Value, json};

use crate::agent::scene::{Scene, eventually};

/// A client, late by some turns of the scheduler.
struct Person {
    client: TestClient,
    events: SseReader,
    late: usize,
    allow: bool,
}

impl Person {
    async fn answer(&self, scene: &Scene, question: &Value) -> (u16, Value) {
        for _ in 0..self.late {
            tokio::task::yield_now().await;
        }
        let body = json!({
            "id": question["approval"]["id"],
            "generation": question["approval"]["generation"],
            "allow": self.allow,
            "scope": "once",
        });
        self.client.post(&scene.path("/approve"), &body).await
    }

    /// The page is loaded anew: the question is there, and the state says that somebody is asked.
    async fn reload(&mut self, scene: &Scene, question: &Value) {
        self.events = self.client.events(&scene.path("/events"), None).await;
        self.events
            .wait_for_frame("a state that asks", SOON, |frame| {
                frame.kind() == "runtime_state"
                    && frame.data["runtimeState"]["pendingPrompt"] == true
            })
            .await;
        let prompts = self.client.get_ok(&scene.path("/pending-prompts")).await;
        assert_eq!(prompts[0], *question);
    }

    /// What this client's stream said of the answers to a question.
    async fn told(&self, id: &Value) -> Vec<bool> {
        let answers = |frames: &[Frame]| -> Vec<bool> {
            frames
                .iter()
                .filter(|frame| frame.kind() == "prompt_answered" && frame.data["promptId"] == *id)
                .map(|frame| frame.data["allow"].as_bool().unwrap())
                .collect()
        };
        self.events
            .wait_for("the answer", SOON, |frames| {
                let answers = answers(frames);
                (!answers.is_empty()).then_some(answers)
            })
            .await
    }
}

#[tokio::test]
async fn c16_two_clients_and_one_question_that_is_answered_once() {
    let rounds = scaled(200);
    let scene = Scene::new("ask").await;
    let mut people = Vec::new();
    for _ in 0..2 {
        let client = scene.host.client();
        let events = client.events(&scene.path("/events"), None).await;
        people.push(Person {
            client,
            events,
            late: 0,
            allow: false,
        });
    }
    let mut allowed = 0;
    for round in 0..rounds {
        let name = format!("{round}.txt");
        let call = json!({ "path": name, "content": "x\n" }).to_string();
        scene
            .model
            .push(Step::call(&format!("c{round}"), "write_file", &call));
        scene.model.push(Step::text("done"));
        let turn = scene.submit("go").await;
        let question = scene.question().await;
        let id = &question["approval"]["id"];
        // Who comes first, by how much, and who allows, changes from round to round.
        for (place, person) in people.iter_mut().enumerate() {
            person.late = (round * (7 + 4 * place)) % 23;
            person.allow = (round + place) % 2 == 0;
            if (round + place) % 8 == 0 {
                person.reload(&scene, &question).await;
            }
        }
        let (one, two) = tokio::join!(
            people[0].answer(&scene, &question),
            people[1].answer(&scene, &question)
        );
        let won = match (one.0, two.0) {
            (204, 409) => 0,
            (409, 204) => 1,
            both => panic!("round {round}: {both:?} {one:?} {two:?}"),
        };
        let late = if won == 0 { two } else { one };
        assert_eq!(late.1["code"], "prompt_not_pending", "round {round}");
        scene.ended(&turn).await;
        let allow = people[won].allow;
        allowed += usize::from(allow);
        assert_eq!(
            Path::new(&scene.file(&name)).exists(),
            allow,
            "round {round}: the first answer counts"
        );
        for person in &people {
            assert_eq!(person.told(id).await, [allow], "round {round}");
        }
        assert_eq!(people[1 - won].answer(&scene, &question).await.0, 409);
    }
    let prompts = scene.get("/pending-prompts").await;
    assert_eq!(prompts, json!([]));
    // Each question has its one answer in the log.
    let answers = eventually("the answers in the log", SOON, async || {
        let kinds = scene.kinds();
        let count = |kind: &str| kinds.iter().filter(|own| *own == kind).count();
        (count("prompt_answered") > 0).then(|| count("prompt_answered"))
    })
    .await;
    assert_eq!(answers, rounds, "{allowed} of {rounds} were allowed");
}

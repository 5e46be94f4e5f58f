# SPDX-License-Identifier: Apache-2.0
"""Which lists of torchvision a loader accepts: the pipelines that training scripts have, of both versions."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision import models
from torchvision import transforms as v1
from torchvision.transforms import v2

import precache
import precache.torch
from precache import transforms
from precache._native import augmentation
from precache._translate import Translation, translate

STORED = precache.Spec("uint8", "chw", (3, 256, 256))
RECIPE = {"size": [256, 256], "fit": "crop", "resize": 256, "filter": "bilinear"}
SMALL = precache.Spec("uint8", "chw", (3, 32, 32))
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CIFAR = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))


def read(steps, stored=STORED, recipe=RECIPE):
    return translate(steps, stored, recipe)


def names(translation):
    return [type(each).__name__ for each in translation.operations]


def jitter(version):
    return version.RandomApply([version.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8)


def simclr(size):
    return v1.Compose(
        [
            v1.RandomResizedCrop(size, scale=(0.2, 1.0)),
            jitter(v1),
            v1.RandomGrayscale(p=0.2),
            v1.RandomApply([v1.GaussianBlur(23, sigma=(0.1, 2.0))], p=0.5),
            v1.RandomHorizontalFlip(),
            v1.ToTensor(),
            v1.Normalize(*IMAGENET),
        ]
    )


# (name, steps, stored spec, names of the operations that run, names of the steps that are dropped)
ACCEPTED = [
    (
        "imagenet training",
        v1.Compose([v1.RandomResizedCrop(224), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize(*IMAGENET)]),
        STORED,
        "RandomResizedCrop RandomHorizontalFlip",
        "",
    ),
    (
        "imagenet evaluation",
        v1.Compose([v1.Resize(256), v1.CenterCrop(224), v1.ToTensor(), v1.Normalize(*IMAGENET)]),
        STORED,
        "CenterCrop",
        "Resize(256)",
    ),
    (
        "transforms of weights",
        models.ResNet50_Weights.IMAGENET1K_V1.transforms(),
        STORED,
        "CenterCrop",
        "Resize(256)",
    ),
    (
        "resize, crop, flip",
        v1.Compose([v1.Resize(256), v1.CenterCrop(256), v1.RandomCrop(224), v1.RandomHorizontalFlip(), v1.ToTensor()]),
        STORED,
        "RandomCrop RandomHorizontalFlip",
        "Resize(256) CenterCrop(256)",
    ),
    (
        "second version, the documented one",
        v2.Compose(
            [
                v2.ToImage(),
                v2.ToDtype(torch.uint8, scale=True),
                v2.RandomResizedCrop(size=(224, 224), antialias=True),
                v2.RandomHorizontalFlip(p=0.5),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
            ]
        ),
        STORED,
        "RandomResizedCrop RandomHorizontalFlip",
        "ToImage ToDtype(uint8)",
    ),
    (
        "cifar with a border",
        v1.Compose([v1.RandomCrop(32, padding=4), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize(*CIFAR)]),
        SMALL,
        "RandomCrop RandomHorizontalFlip",
        "",
    ),
    (
        "cifar with Pad",
        v1.Compose([v1.Pad(4, padding_mode="reflect"), v1.RandomHorizontalFlip(), v1.RandomCrop(32), v1.ToTensor()]),
        SMALL,
        None,
        "transform has Pad without a RandomCrop after it",
    ),
    (
        "cifar with Pad and RandomCrop",
        v1.Compose([v1.Pad(4, padding_mode="reflect"), v1.RandomCrop(32), v1.ToTensor()]),
        SMALL,
        "RandomCrop",
        "",
    ),
    (
        "tensors first",
        v1.Compose([v1.ToTensor(), v1.RandomCrop(32, padding=4), v1.RandomHorizontalFlip(), v1.Normalize(*CIFAR)]),
        SMALL,
        "RandomCrop RandomHorizontalFlip",
        "",
    ),
    (
        "rotation and colour",
        v1.Compose(
            [
                v1.Resize((256, 256)),
                v1.RandomHorizontalFlip(),
                v1.RandomVerticalFlip(),
                v1.RandomRotation(20),
                v1.ColorJitter(brightness=0.2, contrast=0.2),
                v1.ToTensor(),
                v1.Normalize([0.5], [0.5]),
            ]
        ),
        STORED,
        "RandomHorizontalFlip RandomVerticalFlip RandomRotation ColorJitter",
        "Resize(256)",
    ),
    (
        "simclr",
        simclr(96),
        STORED,
        "RandomResizedCrop RandomApply RandomGrayscale RandomApply RandomHorizontalFlip",
        "",
    ),
    (
        "torchvision's recipe",
        v2.Compose(
            [
                v2.RandomResizedCrop(176, interpolation=v2.InterpolationMode.BILINEAR),
                v2.RandomHorizontalFlip(),
                v2.TrivialAugmentWide(interpolation=v2.InterpolationMode.BILINEAR),
                v2.PILToTensor(),
                v2.ConvertImageDtype(torch.float32),
                v2.Normalize(*IMAGENET),
                v2.RandomErasing(p=0.1),
            ]
        ),
        STORED,
        "RandomResizedCrop RandomHorizontalFlip TrivialAugmentWide RandomErasing",
        "PILToTensor",
    ),
    (
        "policies",
        v1.Compose([v1.AutoAugment(v1.AutoAugmentPolicy.CIFAR10), v1.RandAugment(2, 7), v1.ToTensor()]),
        SMALL,
        "AutoAugment RandAugment",
        "",
    ),
    (
        "affine",
        v1.Compose([v1.RandomAffine(15, (0.1, 0.1), (0.9, 1.1), shear=(-5, 5), fill=(124, 116, 104)), v1.ToTensor()]),
        STORED,
        "RandomAffine",
        "",
    ),
    (
        "the rest",
        v2.Compose(
            [
                v2.RGB(),
                v2.RandomSolarize(128),
                v2.RandomPosterize(4),
                v2.RandomEqualize(),
                v2.RandomAutocontrast(),
                v2.RandomInvert(),
                v2.RandomAdjustSharpness(2),
                v2.Grayscale(3),
                v2.Identity(),
            ]
        ),
        STORED,
        "RandomSolarize RandomPosterize RandomEqualize RandomAutocontrast RandomInvert RandomAdjustSharpness RandomGrayscale",
        "RGB Identity",
    ),
    (
        "a Compose of a Sequential",
        v1.Compose([nn.Sequential(v1.RandomHorizontalFlip(), v1.CenterCrop((256, 256))), v1.RandomVerticalFlip()]),
        STORED,
        "RandomHorizontalFlip CenterCrop RandomVerticalFlip",
        "",
    ),
    ("one operation", v1.RandomHorizontalFlip(0.3), STORED, "RandomHorizontalFlip", ""),
    ("no operation", None, STORED, "", ""),
    ("erasing of floats", [v1.ToTensor(), v1.RandomErasing(value=1), v1.Normalize(*CIFAR)], SMALL, "RandomErasing", ""),
]
REFUSED = [
    (v1.Compose([v1.RandomHorizontalFlip(), v1.Lambda(abs)]), "Lambda", "Python code for single images"),
    (v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32)]), r"ToDtype\(float32\) without scale=True", "scale=True"),
    (v1.RandomPerspective(), "RandomPerspective", "precache.torch.Dataset"),
    (v2.ElasticTransform(), "ElasticTransform", "Leave it out"),
    (v1.RandomChoice([v1.RandomInvert()]), "RandomChoice", "Choose one"),
    (v1.RandomOrder([v1.RandomInvert()]), "RandomOrder", "one order"),
    (v2.MixUp(num_classes=3), "MixUp", "batch_transform="),
    (v1.FiveCrop(32), "FiveCrop", "views="),
    (lambda image: image, "<lambda>", "batch_transform="),
    (v1.RandomHorizontalFlip, "the class RandomHorizontalFlip", "Give an object"),
    (v1.Grayscale(), "a step that makes 1 channel, but the samples have 3", "color='gray'"),
    (v1.Resize(256, max_size=300), "Resize with max_size=300", "both sides"),
    (v2.RandomResizedCrop(8, antialias=False), "antialias=False", "antialias=True"),
    (v1.RandomRotation(5, expand=True), "expand=True", "expand=False"),
    ([v1.ToTensor(), v1.Normalize(0.5, 0.5), v1.ColorJitter(0.1)], "ColorJitter after Normalize", "before Normalize"),
    ([v1.Normalize(0.5, 0.5), v1.Normalize(0.5, 0.5)], "more than one Normalize", "Combine"),
    ([v1.Normalize(0.5, 0.5), v1.RandomErasing(), v1.CenterCrop(8)], "RandomErasing before CenterCrop", "at the end"),
    ([v1.RandomApply([v1.ToTensor()])], "RandomApply of ToFloat", "Take it out"),
    ([v1.RandomApply([v1.Lambda(abs)])], "Lambda", "Python code"),
    (7, "int", "Leave it out"),
]


@pytest.mark.parametrize(
    "steps, stored, ran, dropped", [case[1:] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED]
)
def test_pipelines_of_training_scripts(steps, stored, ran, dropped):
    recipe = RECIPE if stored is STORED else {"size": [32, 32], "fit": "stretch", "filter": "bilinear"}
    if ran is None:
        with pytest.raises(precache.InvalidArgument, match=dropped):
            read(steps, stored, recipe)
        return
    translation = read(steps, stored, recipe)
    assert names(translation) == ran.split()
    assert [step for step, _ in translation.dropped] == dropped.split()
    assert pickle.loads(pickle.dumps(translation)) == translation
    assert len(augmentation(translation)) == len(translation.operations)


@pytest.mark.parametrize("steps, what, hint", REFUSED, ids=[case[1] for case in REFUSED])
def test_what_cannot_run_is_refused_by_name(steps, what, hint):
    with pytest.raises(
        precache.InvalidArgument, match=f"transform has .*{what}.*, which precache cannot run"
    ) as refused:
        read(steps)
    assert hint in refused.value.hint


def test_the_class_decides_not_its_base_or_its_name():
    class RandomHorizontalFlip(v1.RandomHorizontalFlip):
        """Does something else."""

    with pytest.raises(precache.InvalidArgument, match="RandomHorizontalFlip of test_translate"):
        read([RandomHorizontalFlip()])
    kind = type("HorizontalFlip", (), {"__module__": "albumentations.augmentations.geometric"})
    with pytest.raises(precache.InvalidArgument, match="HorizontalFlip of albumentations") as refused:
        read([kind()])
    assert "torchvision.transforms" in refused.value.hint


@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
def test_arguments_are_those_of_torchvision(version):
    bilinear = version.InterpolationMode.BILINEAR
    pairs = [
        (version.RandomResizedCrop((20, 30), (0.3, 0.9), (0.5, 2), interpolation=3), transforms.RandomResizedCrop((20, 30), (0.3, 0.9), (0.5, 2), "bicubic")),
        (version.Resize((8, 9)), transforms.Resize((8, 9))),
        (version.Resize(8, version.InterpolationMode.NEAREST), transforms.Resize(8, "nearest")),
        (version.CenterCrop([7]), transforms.CenterCrop(7)),
        (version.RandomCrop(8, (1, 2), True, (3, 4, 5), "edge"), transforms.RandomCrop(8, (1, 2, 1, 2), True, (3, 4, 5), "edge")),
        (version.RandomCrop(8, (1, 2, 3, 4), padding_mode="symmetric"), transforms.RandomCrop(8, (1, 2, 3, 4), padding_mode="symmetric")),
        (version.RandomHorizontalFlip(0.25), transforms.RandomHorizontalFlip(0.25)),
        (version.RandomVerticalFlip(0.25), transforms.RandomVerticalFlip(0.25)),
        (version.RandomRotation((-10, 30), bilinear, center=(3, 4), fill=7), transforms.RandomRotation((-10, 30), "bilinear", center=(3, 4), fill=7)),
        (version.RandomAffine(10, (0.1, 0.2), (0.5, 2), 7, bilinear, 3, (1, 2)), transforms.RandomAffine(10, (0.1, 0.2), (0.5, 2), 7, "bilinear", 3, (1, 2))),
        (version.RandomAffine(0, shear=(1, 2, 3, 4)), transforms.RandomAffine(0, shear=(1, 2, 3, 4))),
        (version.ColorJitter(0.4, (0.5, 1.5), 2, (-0.1, 0.2)), transforms.ColorJitter(0.4, (0.5, 1.5), 2, (-0.1, 0.2))),
        (version.RandomGrayscale(0.3), transforms.RandomGrayscale(0.3)),
        (version.GaussianBlur((3, 5), 1.5), transforms.GaussianBlur((3, 5), 1.5)),
        (version.RandomSolarize(100, 0.3), transforms.RandomSolarize(100, 0.3)),
        (version.RandomPosterize(3, 0.2), transforms.RandomPosterize(3, 0.2)),
        (version.RandomAdjustSharpness(1.5, 0.1), transforms.RandomAdjustSharpness(1.5, 0.1)),
        (version.TrivialAugmentWide(15, bilinear, [1, 2, 3]), transforms.TrivialAugmentWide(15, "bilinear", (1, 2, 3))),
        (version.RandAugment(3, 5, 11), transforms.RandAugment(3, 5, 11)),
        (version.AutoAugment(version.AutoAugmentPolicy.SVHN), transforms.AutoAugment("svhn")),
        (version.RandomErasing(0.3, (0.1, 0.2), (0.5, 2), "random"), transforms.RandomErasing(0.3, (0.1, 0.2), (0.5, 2), "random")),
        (version.RandomErasing(value=[1, 2, 3]), transforms.RandomErasing(value=(1, 2, 3))),
        (version.RandomApply([version.RandomInvert(1.0)], 0.2), transforms.RandomApply([transforms.RandomInvert(1.0)], 0.2)),
    ]  # fmt: skip
    for given, expected in pairs:
        assert read(given).operations == (expected,), given


@pytest.mark.parametrize("kind", [v1.TrivialAugmentWide, v1.RandAugment, v1.RandomHorizontalFlip, v1.RandomErasing, v1.RandomGrayscale, v1.AutoAugment], ids=lambda kind: kind.__name__)  # fmt: skip
def test_defaults_are_those_of_torchvision(kind):
    assert read(kind()).operations == (getattr(transforms, kind.__name__)(),)


def test_normalize_and_the_type_of_elements():
    steps = v2.Compose([v2.ToImage(), v2.ToDtype(torch.bfloat16, scale=True), v2.Normalize(*IMAGENET)])
    translation = read(steps)
    assert translation.normalize == transforms.Normalize("imagenet") and translation.dtype == "bfloat16"
    assert read(v1.ToTensor()).dtype == "float32" and read(v1.ToTensor()).normalize is None
    assert read([v1.PILToTensor()]).dtype is None
    stored = {"normalize": {"mean": list(IMAGENET[0]), "std": list(IMAGENET[1])}}
    translation = read(v1.Normalize(*IMAGENET), recipe=RECIPE | stored)
    assert translation.normalize is None and translation.dropped[0][0] == "Normalize"


def test_the_place_of_normalize_decides_what_erasing_sees():
    erasing = transforms.RandomErasing(value=1)
    after = read([transforms.Normalize("imagenet"), erasing])
    assert after.after_normalize == 1 and augmentation(after)[0][1]["after_normalize"] is True
    before = read([erasing, transforms.Normalize("imagenet")])
    assert before.after_normalize == 0 and augmentation(before)[0][1]["after_normalize"] is False
    white = read([v1.ToTensor(), v1.RandomErasing(value=1), v1.Normalize(0.5, 0.5)])
    assert white.after_normalize == 0 and white.operations[0].value == 255
    with pytest.raises(precache.InvalidArgument, match="RandomErasing before Normalize"):
        read([v1.ToTensor(), v1.RandomErasing(value="random"), v1.Normalize(0.5, 0.5)])
    assert str(after).splitlines()[0].startswith("runs     Normalize") and "RandomErasing" in str(after).splitlines()[1]


def test_what_the_shards_did_is_dropped_and_said():
    steps = [v1.Resize(256, v1.InterpolationMode.BICUBIC), v1.CenterCrop(256), v1.RandomCrop(224)]
    translation = read(steps)
    assert translation.dropped == (
        ("Resize(256)", "The build already resized the shorter side to 256, with the filter bilinear."),
        ("CenterCrop(256)", "The stored images are 256x256 already."),
    )
    assert "dropped  Resize(256): The build already resized" in str(translation)
    assert str(Translation()) == "nothing runs"
    assert names(read([v1.Resize(128)])) == ["Resize"]  # another size runs
    assert names(read([v1.RandomHorizontalFlip(), v1.Resize(256)])) == ["RandomHorizontalFlip", "Resize"]
    cropped = {"size": [224, 224], "fit": "crop", "resize": 256, "filter": "bilinear"}
    spec = precache.Spec("uint8", "hwc", (224, 224, 3))
    translation = read([v1.Resize(256), v1.CenterCrop(224)], spec, cropped)
    assert not translation.operations and len(translation.dropped) == 2
    assert "note" in str(read([v1.ToTensor(), v1.ColorJitter(0.1)]))


STRETCHED = {"size": [256, 256], "fit": "stretch", "filter": "bilinear"}
CROPPED = {"size": [224, 224], "fit": "crop", "resize": 256, "filter": "bilinear"}
CROPPED_SPEC = precache.Spec("uint8", "chw", (3, 224, 224))


def cropped(*steps):
    return read(list(steps), CROPPED_SPEC, CROPPED)


def test_a_resize_of_stretched_images_would_keep_their_aspect():
    with pytest.raises(
        precache.InvalidArgument, match=r"Resize\(128\) of images that were stretched to 256x256"
    ) as refused:
        read([v1.Resize(128), v1.CenterCrop(96)], recipe=STRETCHED)
    assert "fit='crop' and resize=128" in refused.value.hint
    flipped = [v1.RandomHorizontalFlip(), v1.Resize(300), v1.RandomCrop(8)]
    for steps in ([v1.Resize(300), v1.RandomCrop(8), v1.RandomResizedCrop(8)], [v1.Resize(300)], flipped):
        with pytest.raises(precache.InvalidArgument, match=r"Resize\(300\) of images that were stretched"):
            read(steps, recipe=STRETCHED)
    assert names(read([v1.CenterCrop(200), v1.Resize(100)], recipe=STRETCHED)) == ["CenterCrop", "Resize"]
    smaller = read([v1.Resize(128), v1.RandomHorizontalFlip(), v1.RandomResizedCrop(96)], recipe=STRETCHED)
    assert names(smaller) == ["Resize", "RandomHorizontalFlip", "RandomResizedCrop"] and not smaller.warnings
    larger = read([v1.Resize(300), v1.RandomResizedCrop(96)], recipe=STRETCHED)
    assert names(larger) == ["RandomResizedCrop"] and not larger.warnings
    assert larger.dropped == (("Resize(300)", "RandomResizedCrop cuts from the stored images, which are 256x256."),)
    assert names(read([v1.Resize((128, 96)), v1.RandomCrop(8)], recipe=STRETCHED)) == ["Resize", "RandomCrop"]


def test_a_dropped_resize_that_was_another_one_is_a_warning():
    same = read([v1.Resize((256, 256)), v1.RandomCrop(224)], recipe=STRETCHED)
    assert [step for step, _ in same.dropped] == ["Resize(256)"] and not same.warnings
    kept = read([v1.Resize(256), v1.RandomCrop(224)], recipe=STRETCHED)
    assert kept.warnings == (
        "Resize(256) is dropped: it keeps the aspect of images, and build stretched them to 256x256.",
    )
    assert "warning  Resize(256) is dropped" in str(kept)
    assert not read([v1.Resize(256), v1.RandomResizedCrop(224)], recipe=STRETCHED).warnings
    assert not cropped(v1.Resize(256), v1.CenterCrop(224)).warnings
    for size in (224, (224, 224)):
        (warning,) = cropped(v1.Resize(size)).warnings
        assert (
            warning == "Resize(224) is dropped: the stored images of 224x224 are the centre of each image (fit='crop')."
        )
    (warning,) = cropped(v1.Resize(256, v1.InterpolationMode.BICUBIC)).warnings
    assert warning == "Resize(256) is dropped: build resized with the filter bilinear, not bicubic."
    assert not read(v1.Resize(256), recipe={}).warnings  # nothing is known


def test_a_recipe_for_another_size_tells_only_the_fit():
    spec = precache.Spec("uint8", "chw", (3, 112, 112))
    converted = read([v1.Resize(256)], spec, CROPPED)  # not the 256 of the originals
    assert names(converted) == ["Resize"]
    with pytest.raises(precache.InvalidArgument, match="stretched to 112x112"):
        read([v1.Resize(256)], spec, STRETCHED)


def test_crops_larger_than_what_the_shards_kept_of_a_resize():
    assert names(cropped(v1.Resize(256), v1.RandomCrop(224))) == ["RandomCrop"]
    for crop in (v1.RandomCrop(240), v1.CenterCrop(240), v1.RandomCrop(240, pad_if_needed=True)):
        name = type(crop).__name__
        message = rf"{name}\(240\) is larger than the stored 224x224 images"
        with pytest.raises(precache.InvalidArgument, match=message) as refused:
            cropped(v1.Resize(256), v1.RandomHorizontalFlip(), crop)
        assert refused.value.hint == "Build the shards with a size of at least 240x240, or crop less."
    bordered = cropped(v1.Resize(256), v1.RandomCrop(232, padding=4))
    assert names(bordered) == ["RandomCrop"]
    assert names(cropped(v1.Resize(256), v1.RandomResizedCrop(240), v1.CenterCrop(250))) == [
        "RandomResizedCrop",
        "CenterCrop",
    ]


@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
def test_filters_that_only_build_has(version):
    lanczos = version.Resize(256, version.InterpolationMode.LANCZOS)
    done = read([lanczos, version.CenterCrop(224)], CROPPED_SPEC, CROPPED | {"filter": "lanczos"})
    assert done.dropped[0] == ("Resize(256)", "The build already resized the shorter side to 256.")
    assert not done.operations and not done.warnings
    with pytest.raises(precache.InvalidArgument, match=r"Resize\(256\) with the filter lanczos, which") as refused:
        cropped(lanczos)
    assert refused.value.hint == (
        "The shards were built with filter='bilinear'. To resize, build the shards with filter='lanczos' and this size, "
        "or use bilinear or bicubic."
    )
    for steps in ([version.Resize(99, version.InterpolationMode.BOX)], [version.RandomInvert(), lanczos]):
        with pytest.raises(precache.InvalidArgument, match="with the filter (box|lanczos)"):
            read(steps)
    with pytest.raises(precache.InvalidArgument, match="RandomApply of ResizeByFilter"):
        read(version.RandomApply([lanczos]))


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_the_first_version_mirrors_its_own_border(mode):
    def padded(version, size):
        return version.RandomCrop(size, padding=4, pad_if_needed=True, padding_mode=mode)

    with pytest.raises(precache.InvalidArgument, match=f"padding, pad_if_needed and padding_mode='{mode}'") as refused:
        read(padded(v1, 41), SMALL)
    assert "torchvision.transforms.v2" in refused.value.hint
    with pytest.raises(precache.InvalidArgument, match="pad_if_needed"):
        read([v1.RandomResizedCrop(8), padded(v1, 20)], SMALL)
    expected = transforms.RandomCrop(40, padding=4, pad_if_needed=True, padding_mode=mode)
    assert read(padded(v1, 40), SMALL).operations == (expected,)  # large enough
    assert names(read(padded(v2, 41), SMALL)) == ["RandomCrop"]
    without = v1.RandomCrop(41, pad_if_needed=True, padding_mode=mode)
    assert names(read(without, SMALL)) == ["RandomCrop"]


def test_limits_of_policies():
    assert read(v1.RandAugment(num_ops=0)).operations == (transforms.RandAugment(0),)
    assert read(v1.TrivialAugmentWide(1000)).operations == (transforms.TrivialAugmentWide(1000),)
    for make in (transforms.TrivialAugmentWide, transforms.RandAugment):
        with pytest.raises(
            ValueError, match=f"num_magnitude_bins of {make.__name__} must be .*from 2 to 1000, got 1001"
        ):
            make(num_magnitude_bins=1001)


@pytest.mark.parametrize("format", ["tar", "tfrecord", "hdf5"])
def test_shards_tell_how_they_were_built(pictures, tmp_path, format):
    precache.build(pictures, tmp_path, size=24, resize=28, filter="lanczos", format=format, progress=False)
    first = sorted(each for each in tmp_path.iterdir() if each.name.startswith("train-"))[0]
    for path in (tmp_path, first, [first]):
        steps = v1.Compose([v1.Resize(28, v1.InterpolationMode.LANCZOS), v1.CenterCrop(24), v1.RandomHorizontalFlip()])
        loader = precache.torch.Loader(path, 2, transform=steps)
        assert [step for step, _ in loader.transforms.dropped] == ["Resize(28)", "CenterCrop(24)"]
    with pytest.raises(precache.InvalidArgument, match=r"RandomCrop\(26\) is larger than the stored 24x24 images"):
        precache.Loader(tmp_path, 2, transform=[transforms.Resize(24), transforms.RandomCrop(26)])


def test_a_loader_warns_once(pictures, tmp_path):
    precache.build(pictures, tmp_path, size=24, resize=28, progress=False)
    steps = [transforms.Resize(28, "bicubic"), transforms.RandomCrop(20)]
    with pytest.warns(UserWarning, match="not bicubic") as caught:
        loader = precache.Loader(tmp_path, 2, views=[steps, steps])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(loader))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "a").mkdir()
    for i in range(4):
        pixels = np.random.default_rng(i).integers(0, 256, (30 + 10 * i, 50, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "a" / f"{i}.png")
    return folder


STEPS_BEFORE = {
    "none": [],
    "a resize": [transforms.Resize((64, 64))],
    "a centre crop": [transforms.RandomHorizontalFlip(0), transforms.CenterCrop(32)],
    "a crop": [transforms.RandomHorizontalFlip(0), transforms.RandomCrop(32)],
}


@pytest.mark.parametrize("before", STEPS_BEFORE.values(), ids=STEPS_BEFORE)
def test_rectangles_of_the_original_after_steps_that_keep_all_of_it(pictures, tmp_path, before):
    precache.build(pictures, tmp_path, size=32, fit="stretch", progress=False)
    dataset = precache.open(tmp_path)
    rectangle = transforms.RandomResizedCrop(8, scale=(0.2, 0.5))
    loader = precache.Loader(dataset, 2, transform=[*before, rectangle])
    for sample in range(4):
        original_height = dataset.column("size")[sample][0]
        for epoch in range(20):
            top, left, height, width = loader.draw(sample, epoch)["RandomResizedCrop"]
            aspect = (width * 50) / (height * original_height)  # in the original
            slack = 1.5 / min(height, width)  # of rounding to whole pixels
            assert 3 / 4 * (1 - slack) <= aspect <= 4 / 3 * (1 + slack), (sample, epoch)


def test_torchvision_is_not_imported(tmp_path):
    program = "import sys, precache, precache.torch, precache.transforms; print('torchvision' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: transforms.RandomResizedCrop(0), "size of RandomResizedCrop must be .*got 0"),
        (lambda: transforms.Resize(65536), "size of Resize must be .*got 65536"),
        (
            lambda: transforms.RandomResizedCrop(8, scale=(1, 0.5)),
            r"scale of RandomResizedCrop must be .*got \(1, 0.5\)",
        ),
        (lambda: transforms.RandomResizedCrop(8, ratio=(0, 1)), "ratio of RandomResizedCrop"),
        (lambda: transforms.RandomResizedCrop(8, scale=(float("nan"), 1)), "scale of RandomResizedCrop"),
        (
            lambda: transforms.RandomResizedCrop(8, interpolation="lanczos"),
            "interpolation of RandomResizedCrop must be .*got 'lanczos'",
        ),
        (lambda: transforms.RandomHorizontalFlip(1.1), "p of RandomHorizontalFlip must be .*got 1.1"),
        (lambda: transforms.RandomHorizontalFlip(float("nan")), "p of RandomHorizontalFlip must be .*got nan"),
        (lambda: transforms.RandomHorizontalFlip(0.4, alternate=True), "p of RandomHorizontalFlip must be .*got 0.4"),
        (lambda: transforms.RandomCrop(8, padding=-1), "padding of RandomCrop must be .*got -1"),
        (lambda: transforms.RandomCrop(8, fill=256), "fill of RandomCrop must be .*got 256"),
        (lambda: transforms.RandomCrop(8, padding_mode="wrap"), "padding_mode of RandomCrop must be .*got 'wrap'"),
        (lambda: transforms.ColorJitter(hue=0.6), "hue of ColorJitter must be .*got 0.6"),
        (lambda: transforms.ColorJitter(brightness=-1), "brightness of ColorJitter must be .*got -1"),
        (lambda: transforms.GaussianBlur(4), "kernel_size of GaussianBlur must be .*got 4"),
        (lambda: transforms.GaussianBlur(3, (0, 1)), "sigma of GaussianBlur"),
        (lambda: transforms.RandomAffine(10, translate=(2, 0)), "translate of RandomAffine"),
        (lambda: transforms.RandomRotation(-5), "degrees of RandomRotation must be .*got -5"),
        (lambda: transforms.RandAugment(magnitude=31), "magnitude of RandAugment must be .*got 31"),
        (lambda: transforms.AutoAugment("coco"), "policy of AutoAugment must be .*got 'coco'"),
        (lambda: transforms.RandomApply([]), "transforms of RandomApply"),
        (lambda: transforms.RandomApply([transforms.Normalize(0, 1)]), "RandomApply has Normalize"),
        (lambda: transforms.RandomErasing(value="noise"), "value of RandomErasing must be .*got 'noise'"),
        (lambda: transforms.Normalize((1, 2), 1), "normalize must be"),
    ],
    ids=range(24),
)
def test_wrong_arguments_are_refused_when_an_operation_is_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()
